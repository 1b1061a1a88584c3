import { SkepError } from '@skep/core/errors/skep-error.ts';
import { enforce } from '../../../access/decision.ts';
import { decideRead } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import type { StoredSource } from '../../../store/rows.ts';
import type { AdminCall } from '../admin-route.ts';

/** A source that the caller may see. One that is hidden and one that is not there fail with the same words. */
export async function visibleSource(call: AdminCall, name: string): Promise<StoredSource> {
  const source = await call.store.readSource(name);
  if (source === undefined) throw unknownSource(name);
  enforce(decideRead(call.authority, storedClaims(source.claims)), notFound(name));
  return source;
}

export function unknownSource(name: string): SkepError {
  return new SkepError('store/source-unknown', { message: notFound(name) });
}

function notFound(name: string): string {
  return `source not found: ${name}`;
}

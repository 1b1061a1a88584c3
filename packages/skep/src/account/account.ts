import { hasCode } from '@skep/core/errors/skep-error.ts';
import { statusOf } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { RegistryServer } from './ask-registry.ts';

/** Who one is at a server of registries, as far as it says so. */
export interface Account {
  /** Absent where the server does not tell. */
  readonly subject?: string;
  readonly roles: readonly string[];
  /** The names of the registries that one may see; absent where the server lists none. */
  readonly registries?: readonly string[];
}

/** Asks a server who one is, and which registries there are. Fails as `RegistryServer.ask`. */
export async function askAccount({ ask, server }: RegistryServer, signal: AbortSignal): Promise<Account> {
  const [me, listed] = await Promise.all([
    ask({ url: `${server}/v1/me`, signal }).catch(unlessAbsent),
    ask({ url: `${server}/v1/registries`, signal }).catch(unlessAbsent),
  ]);
  const { subject, roles } = isRecord(me) ? me : {};
  const registries = namesIn(listed);
  return {
    ...(typeof subject === 'string' && { subject }),
    roles: Array.isArray(roles) ? roles.filter((role) => typeof role === 'string') : [],
    ...(registries !== undefined && { registries }),
  };
}

/** The registries of a server, of what `GET /v1/registries` answers; undefined for any other answer. */
export function namesIn(listed: unknown): readonly string[] | undefined {
  const rows = isRecord(listed) ? listed['registries'] : undefined;
  if (!Array.isArray(rows)) return undefined;
  return rows
    .map((row) => (isRecord(row) ? row['name'] : undefined))
    .filter((name) => typeof name === 'string');
}

/** Other registries have no such endpoints. */
function unlessAbsent(error: unknown): undefined {
  const status = statusOf(error);
  if (status === 404 || status === 405 || hasCode(error, 'fetch/not-json')) return;
  throw error;
}

import { redactUrl } from '@skep/core/log/redact.ts';
import { catalogOf } from '../catalog/open-catalog.ts';
import { ok, type Finding, type Inquiry } from './check.ts';
import { broken } from './machine.ts';

/** A full name that nobody has: a registry is asked for one server, not for all. */
const NOBODY = 'invalid.skep/nobody';

/** Whether the catalogue can be reached and read. */
export async function lookAtCatalogue({ context, signal }: Inquiry): Promise<Finding> {
  try {
    const catalog = await catalogOf(context);
    const { kind, location } = catalog;
    const where = location === '' ? kind : `${kind} ${redactUrl(location)}`;
    if (kind === 'API endpoint') {
      await catalog.find(NOBODY, signal);
      return ok(`${where} answers`);
    }
    return ok(`${where}, ${(await catalog.list({ signal })).length} servers`);
  } catch (error) {
    signal.throwIfAborted();
    return broken(error);
  }
}

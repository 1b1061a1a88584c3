import { SkepError } from '@skep/core/errors/skep-error.ts';
import { chosenKind, openProvider } from '../secrets/open-provider.ts';
import type { SecretsProvider } from '../secrets/provider.ts';
import { ok, type Finding, type Inquiry } from './check.ts';

/** An item that nobody has: 1Password is asked for one, not for all. */
const NOBODY = 'op://skep-doctor/none/none';

/** Whether the secrets that servers are given can be read now, without a question. Where nothing was chosen, none are. */
export async function lookAtSecrets({ context, signal }: Inquiry): Promise<Finding | undefined> {
  const { ask: _nobody, ...alone } = context;
  try {
    const kind = await chosenKind(alone);
    if (kind === undefined) return undefined;
    if (kind === 'none') return ok('turned off');
    return ok(`${kind}${await countIn(await openProvider({ ...alone, signal }))}`);
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    const { message: text, hint: remedy } = error;
    return { verdict: 'warning', text, ...(remedy ? { remedy } : {}) };
  }
}

async function countIn({ kind, get, list }: SecretsProvider): Promise<string> {
  if (kind === '1password') await get(NOBODY);
  if (kind === '1password' || !list) return '';
  return `, ${(await list()).length} stored`;
}

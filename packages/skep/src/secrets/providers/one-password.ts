import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import type { ListedSecret, SecretsProvider, SecretsSurroundings } from '../provider.ts';
import { runTool } from '../run-tool.ts';

const WAIT_MS = 60_000;
/** How many items are listed at most: each has to be asked for. */
const MAX_ITEMS = 200;
const REFERENCE = /^op:\/\/[^/]+\/[^/]+\/.+$/;
/** What `op` says of something that is not there, and not of a sign-in that failed. */
const ABSENT = /isn't an? |isn't a field|could not find|doesn't exist|not found/i;

/** Reads what 1Password keeps, through its program `op`. Names are its secret references, `op://VAULT/ITEM/FIELD`. */
export function onePasswordProvider({ env }: Pick<SecretsSurroundings, 'env'>): SecretsProvider {
  const op = async (...args: readonly string[]) => {
    const answer = await runTool('op', args, { env, waitMs: WAIT_MS });
    if (answer) return answer;
    throw new SkepError('secrets/tool', {
      message: 'the 1Password command-line tool "op" is not installed',
      hint: 'install it, or choose another place with skep secret setup',
    });
  };
  const asked = async (...args: readonly string[]): Promise<unknown> => {
    const { status, out, err } = await op(...args, '--format', 'json');
    if (status === 0) return parsedJson(out);
    throw failed(err);
  };
  return {
    kind: '1password',
    async get(name) {
      if (!REFERENCE.test(name)) {
        throw new SkepError('secrets/invalid-name', {
          message: `"${name}" is no secret reference of 1Password`,
          hint: 'write op://VAULT/ITEM/FIELD',
        });
      }
      const { status, out, err } = await op('read', '--no-newline', name);
      if (status === 0) return out;
      if (ABSENT.test(err)) return undefined;
      throw failed(err);
    },
    async list() {
      const items = recordsIn(await asked('item', 'list')).slice(0, MAX_ITEMS);
      const found: ListedSecret[] = [];
      for (const { id, vault } of items) {
        if (typeof id !== 'string' || id.startsWith('-')) continue;
        const inVault = isRecord(vault) && typeof vault['id'] === 'string' ? [`--vault=${vault['id']}`] : [];
        found.push(...fieldsOf(await asked('item', 'get', id, ...inVault)));
      }
      return found;
    },
  };
}

function fieldsOf(item: unknown): readonly ListedSecret[] {
  if (!isRecord(item)) return [];
  const { vault, title } = item;
  const within = isRecord(vault) && typeof vault['name'] === 'string' ? vault['name'] : '?';
  return recordsIn(item['fields']).flatMap(({ reference, label }) =>
    typeof reference === 'string'
      ? [{ name: reference, description: `${within} :: ${String(title)} :: ${String(label)}` }]
      : [],
  );
}

const recordsIn = (value: unknown): readonly Readonly<Record<string, unknown>>[] =>
  Array.isArray(value) ? value.filter(isRecord) : [];

const failed = (why: string): SkepError =>
  new SkepError('secrets/tool', {
    message: `1Password refuses: ${why || 'no reason given'}`,
    hint: 'sign in with op signin, or set OP_SERVICE_ACCOUNT_TOKEN',
  });

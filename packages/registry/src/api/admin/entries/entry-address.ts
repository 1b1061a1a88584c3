import { serverNameFault } from '@skep/core/catalog/entry-name.ts';
import type { EntryAddress } from '../../../store/decisions.ts';
import type { EntryKind } from '../../../store/rows.ts';
import { badRequest, type Parameter, WORD } from '../../route/parameter.ts';
import { segment } from '../../route/path-parameters.ts';

const KINDS: ReadonlyMap<string, EntryKind> = new Map([
  ['server', 'server'],
  ['skill', 'skill'],
  ['plugin', 'plugin'],
]);

/** `server`, `skill` or `plugin`; anything else is refused in the words of the endpoint. */
export function entryType(refusal: string): Parameter<EntryKind> {
  return {
    description: 'What kind of entry',
    schema: { enum: [...KINDS.keys()] },
    parse: (text) => {
      const kind = KINDS.get(text ?? '');
      if (kind === undefined) throw badRequest(refusal);
      return kind;
    },
  };
}

export const UNSUPPORTED_TYPE = "unsupported entry type: must be 'server', 'skill', or 'plugin'";
export const INVALID_TYPE = "invalid entry type: must be 'server', 'skill', or 'plugin'";

export const entryName: Parameter<string> = {
  description:
    'Name of an entry: of a server as published; of a skill or plugin `namespace%2Fname`, or its bare name where only one has it',
  schema: WORD,
  parse: (text) => segment('name', text),
};

/** Where to look for an entry. The name of a server includes its namespace. Fails with `registry/bad-request`. */
export function entryAddress(kind: EntryKind, name: string): EntryAddress {
  if (kind === 'server') {
    const fault = serverNameFault(name);
    if (fault !== undefined) throw badRequest(`invalid server name format: ${fault}`);
    return { kind, namespace: '', name };
  }
  const slash = name.indexOf('/');
  if (slash < 0) return { kind, name };
  return { kind, namespace: name.slice(0, slash), name: name.slice(slash + 1) };
}

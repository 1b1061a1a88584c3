import { serverNameFault } from '@skep/core/catalog/entry-name.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { EntryAddress, PickEntry, ExistingEntry } from '../../../store/decisions.ts';
import type { EntryKind } from '../../../store/rows.ts';
import { segment, badRequest, WORD, type Parameter } from '../../route/parameter.ts';

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

/** The one entry under an address. Fails with `registry/not-found`, or `registry/ambiguous-name` where several have it. */
export function chooseEntry({ kind, name }: EntryAddress): PickEntry {
  return ([entry, ...others]) => {
    if (entry === undefined) throw new SkepError('registry/not-found');
    if (others.length > 0) {
      throw new SkepError('registry/ambiguous-name', {
        message: `more than one ${kind} is called ${JSON.stringify(name)}: give namespace%2Fname`,
      });
    }
    return entry;
  };
}

/** The entry under an address if it has the version: what is unknown is 404 before what is forbidden is 403. */
export function chooseVersion(address: EntryAddress, version: string): PickEntry {
  const choose = chooseEntry(address);
  return (found): ExistingEntry => {
    const entry = choose(found);
    if (!entry.versions.includes(version)) throw new SkepError('registry/not-found');
    return entry;
  };
}

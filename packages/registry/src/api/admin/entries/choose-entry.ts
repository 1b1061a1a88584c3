import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { PickEntry, EntryAddress, ExistingEntry } from '../../../store/decisions.ts';

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

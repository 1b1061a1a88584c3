import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { ClaimSet } from '../../access/claim-set.ts';
import type {
  ChooseEntry,
  DecideOnPublish,
  EntryAddress,
  ExistingEntry,
  MarkedVersions,
  MarkRequest,
  PublishedVersion,
  PublishRequest,
} from '../decisions.ts';
import { identityOf } from '../rows.ts';
import type { ChosenEntry, EntryWork } from './managed-entries.ts';

/** Adds a version, and its entry if it is the first. One publish at a time: the row of the managed source is the lock. */
export function publishWork(request: PublishRequest, decide: DecideOnPublish): EntryWork<PublishedVersion> {
  const identity = identityOf(request);
  return {
    address: request,
    seemsNew: request.seemsNew,
    act: (managed) => {
      const { source: target, now } = managed;
      const [entry] = managed.find(identity);
      decide({ target, entry, registry: managed.registry(request.registry) });
      if (target === undefined) throw new SkepError('access/no-managed-source');
      if (entry?.versions.includes(request.version.version) === true) {
        throw new SkepError('access/version-exists');
      }
      const version = { ...request.version, createdAt: now, updatedAt: now };
      const { claims, versions } = managed.add(target.name, request, version);
      return { source: target.name, ...identity, claims, version, versions };
    },
  };
}

/** The last version takes its entry along; gives the entry as it was. `registry/not-found` for an unknown version. */
export function deleteVersionWork(
  address: EntryAddress,
  version: string,
  choose: ChooseEntry,
): EntryWork<ChosenEntry> {
  return {
    address,
    act: async (managed) => {
      const chosen = managed.choose(address, choose, version);
      await managed.removeVersion(chosen, version);
      return chosen;
    },
  };
}

/** Replaces the status of versions of the managed source. Fails with `registry/not-found` when one is not there. */
export function markWork(request: MarkRequest, choose: ChooseEntry): EntryWork<MarkedVersions> {
  const { address, version, mark } = request;
  return {
    address,
    act: async (managed) => {
      const chosen = managed.choose(address, choose, version);
      const { source, entry } = chosen;
      const official = JSON.stringify({
        status: mark.status,
        statusChangedAt: managed.now,
        ...(mark.message === undefined ? {} : { statusMessage: mark.message }),
      });
      const marked = await managed.mark(chosen, version === undefined ? entry.versions : [version], official);
      return { source, marked, versions: entry.versions };
    },
  };
}

/** Replaces the claims of an entry of the managed source. The value is the entry as it is now. */
export function relabelWork(
  address: EntryAddress,
  claims: ClaimSet,
  choose: ChooseEntry,
): EntryWork<ExistingEntry> {
  return {
    address,
    act: async (managed) => {
      const chosen = managed.choose(address, choose);
      return chosen.entry.claims === claims ? chosen.entry : managed.relabel(chosen, claims);
    },
  };
}

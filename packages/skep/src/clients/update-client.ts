import { join } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { leaveAlone, readClientFile, writeClientFile, type ClientFile } from './client-file.ts';
import { editText, readEntries, type Change } from './edit-text.ts';
import { entryFor, leadsTo, mergeEntry, type Target } from './entry.ts';
import { readRecord, writeRecord, type ClientRecord, type Written } from './record.ts';
import { fileOf, type Client, type Desk } from './table.ts';

/** A workload as clients reach it. */
export interface Reachable {
  readonly name: string;
  /** Its name in the registry that it came from. */
  readonly registryName?: string | undefined;
  readonly mode: 'streamable-http' | 'sse';
  /** The address that is written; absent where only a command is to be. */
  readonly url: string;
  /** Its other addresses: an entry with one of them is Skep's too. */
  readonly otherUrls: readonly string[];
}

export interface Wanted {
  /** These are to be in the file. */
  readonly there: readonly Reachable[];
  /** Entries of these workloads go; of all workloads but `there` with `all`. */
  readonly gone: readonly string[] | 'all';
  /** Changes what is remembered of the client. */
  readonly remember?: (record: ClientRecord) => ClientRecord;
}

export interface UpdateDeps extends Desk {
  readonly places: Places;
  readonly uid: number | undefined;
}

/** What an update of a client's file is going to do. */
export interface Update {
  readonly client: Client;
  readonly file: ClientFile;
  /** What the file will hold; undefined where it goes, or was not there and is not made. */
  readonly text: string | undefined;
  readonly record: ClientRecord;
  /** Entries that are not Skep's and stand where one of its own would. */
  readonly foreign: readonly string[];
  /** Names in the file that lead to a workload afterwards. */
  readonly names: readonly string[];
}

const MAX_TRIES = 5;
const WAIT_MS = 5_000;

/** The command that stands for a workload on every machine. */
export const stdioCommand = (name: string): readonly [string, ...string[]] => [
  'skep',
  'proxy',
  'stdio',
  name,
];

/** Decides what to write into a client's file. Fails with `client/file-left-alone`. */
export async function planUpdate(client: Client, wanted: Wanted, deps: UpdateDeps): Promise<Update> {
  const path = fileOf(client, deps);
  const file = await readClientFile(path, deps.uid);
  const known = await readRecord(deps.places, client.name);
  const record = wanted.remember?.(known) ?? known;
  try {
    return await decide({ client, file, record }, wanted);
  } catch (error) {
    if (error instanceof SkepError) throw error;
    // Libraries that parse fail in their own ways, on depth with an overflow of the stack.
    const why = error instanceof RangeError ? 'it cannot be read' : messageOf(error);
    throw leaveAlone(path, why, error);
  }
}

const messageOf = (error: unknown): string =>
  error instanceof Error ? (error.message.split('\n', 1)[0] ?? '').slice(0, 200) : 'it cannot be read';

/**
 * Writes into a client's file; nobody else of Skep does meanwhile, and what the client itself writes at the same time is
 * not lost. Fails as `planUpdate` does.
 */
export async function updateClient(client: Client, wanted: Wanted, deps: UpdateDeps): Promise<Update> {
  const lock = join(deps.places.locksDir, `client.${client.name}.lock`);
  return withLock(lock, { waitMs: WAIT_MS, what: `the file of ${client.title}` }, async () => {
    for (let tries = 1; ; tries += 1) {
      const update = await planUpdate(client, wanted, deps);
      const isDone = update.text === update.file.text || (await writeClientFile(update.file, update.text));
      if (isDone) {
        await writeRecord(deps.places, client.name, update.record);
        return update;
      }
      if (tries === MAX_TRIES) throw leaveAlone(update.file.path, 'it changes all the time');
    }
  });
}

interface Found {
  readonly client: Client;
  readonly file: ClientFile;
  readonly record: ClientRecord;
}

async function decide({ client, file, record }: Found, { there, gone }: Wanted): Promise<Update> {
  const text = file.text ?? '';
  const present = await readEntries(client, text);
  const changes: Change[] = [];
  const foreign: string[] = [];
  const kept: Written[] = [];
  for (const one of record.entries) {
    const stays = there.some(({ name }) => name === one.workload);
    if (stays || (gone !== 'all' && !gone.includes(one.workload))) kept.push(one);
    else if (leadsTo(client, present.get(one.name), targetOf(one)))
      changes.push({ name: one.name, value: undefined });
  }
  for (const workload of there) {
    const name = nameFor(workload, { client, present, kept });
    if (name === undefined) {
      foreign.push(workload.name);
      continue;
    }
    const target = record.stdio ? { command: stdioCommand(workload.name) } : workload;
    const value = mergeEntry(client, present.get(name), entryFor(client, name, target));
    if (!isDeepStrictEqual(present.get(name), value)) changes.push({ name, value });
    const now = {
      name,
      workload: workload.name,
      stdio: record.stdio,
      ...(!record.stdio && { url: workload.url }),
    };
    const at = kept.findIndex((one) => one.workload === workload.name);
    kept.splice(at === -1 ? kept.length : at, at === -1 ? 0 : 1, now);
  }
  const edited =
    changes.length === 0 ? undefined : await editText(client, text, { changes, emptied: record.emptied });
  const isFirst = file.text === undefined && kept.length > 0;
  const made = record.made || isFirst;
  const result = edited?.text ?? file.text;
  const isLeft = kept.length === 0 && made && /^(?:\uFEFF)?\s*(?:\{\s*\})?\s*$/.test(result ?? '');
  const emptied = kept.length === 0 ? undefined : (edited?.emptied ?? record.emptied);
  const { emptied: _, ...rest } = record;
  return {
    client,
    file,
    text: isLeft ? undefined : result,
    record: { ...rest, entries: kept, made: kept.length > 0 && made, ...(emptied && { emptied }) },
    foreign,
    names: kept.map(({ name }) => name),
  };
}

const targetOf = ({ workload, url }: Written): Target =>
  url === undefined ? { command: stdioCommand(workload) } : { url, mode: 'streamable-http' };

interface Taken {
  readonly client: Client;
  readonly present: ReadonlyMap<string, unknown>;
  readonly kept: readonly Written[];
}

/** How the workload is named in the file; undefined where every name of it is somebody else's. */
function nameFor(workload: Reachable, { client, present, kept }: Taken): string | undefined {
  const own = kept.find((one) => one.workload === workload.name);
  const preferred = client.namesAsRegistry === true ? workload.registryName : undefined;
  return [own?.name, preferred, workload.name].find((name) => {
    if (name === undefined || kept.some((one) => one.name === name && one.workload !== workload.name))
      return false;
    if (!present.has(name)) return true;
    const targets: Target[] = [
      ...(own ? [targetOf(own)] : []),
      { command: stdioCommand(workload.name) },
      ...[workload.url, ...workload.otherUrls].map((url) => ({ url, mode: workload.mode })),
    ];
    return targets.some((target) => leadsTo(client, present.get(name), target));
  });
}

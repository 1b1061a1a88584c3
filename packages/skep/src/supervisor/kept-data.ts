import { lstat, mkdir, opendir, readdir } from 'node:fs/promises';
import path from 'node:path';
import { atomicWrite, removeEmpty, removeFile, removeUnfinished } from '@skep/core/files/atomic-write.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import {
  bool,
  listOf,
  members,
  optional,
  text,
  textThat,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { isVolumeName } from '../permissions/mounts.ts';
import { profileVolumes } from '../permissions/profile.ts';
import { packageReference } from '../protocol/reference.ts';
import { loadRunConfig, savedNames } from '../run-config/file.ts';
import type { RunConfig, RuntimeReference } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { settlingVolumes } from '../runtime/settling-volumes.ts';
import { runtimeReference } from '../settings/identity.ts';
import { checkWorkloadName, isWorkloadName } from '../settings/workload-name.ts';

const MAX_RECORD_BYTES = 64 * 1024;

/** Where the data of one name lies: it may have run on several engines. */
const record = members({
  /** Whose it is, see `keeperOf`; data of two servers is the latter's. */
  keeper: optional(text),
  at: listOf(
    members({
      runtime: optional(runtimeReference),
      where: listOf(text),
      /** The names of those that it shares with others, once it did. */
      volumes: optional(listOf(textThat(isVolumeName, 'is no name of a volume'))),
      /** It is to be removed: somebody asked for it, or nothing was in it when its workload was (decision 0455). */
      goes: optional(bool),
    }),
  ),
});
type KeptRecord = ShapeType<typeof record>;
export type KeptAt = KeptRecord['at'][number];

const directoryOf = (places: Places, name: string): string =>
  path.join(places.keptDir, checkWorkloadName(name));
const recordOf = (places: Places, name: string): string => path.join(directoryOf(places, name), 'kept.json');

/** Where a workload's data lies, whether or not the workload is still there; empty where it keeps none. */
export async function readKept(places: Places, name: string): Promise<readonly KeptAt[]> {
  return (await readRecord(places, name)).at;
}

/** Which server kept the data of a name, where that is known. */
export async function readKeeper(places: Places, name: string): Promise<string | undefined> {
  return (await readRecord(places, name)).keeper;
}

/** A server whatever its version, for people: its name in the registry, its package, or its image. */
export function keeperOf(config: Pick<RunConfig, 'registry_server_name' | 'package' | 'image'>): string {
  const { registry_server_name: entry, package: source, image } = config;
  if (entry !== undefined) return entry;
  if (source) {
    const { version: _, ...named } = source;
    return packageReference(named);
  }
  return image.replace(/@.*$/s, '').replace(/:[^:/]*$/, '');
}

async function readRecord(places: Places, name: string): Promise<KeptRecord> {
  if ((await ifThere(lstat(directoryOf(places, name)))) === undefined) return { at: [] };
  const saved = await savedRecord(places, name).catch(() => undefined);
  // Without its record the directory itself is what is known of it.
  return saved ?? { at: [{ where: [directoryOf(places, name)] }] };
}

/** As it was written; undefined where there is none. Fails with a `SkepError` where it cannot be read. */
async function savedRecord(places: Places, name: string): Promise<KeptRecord | undefined> {
  const what = { maxBytes: MAX_RECORD_BYTES, what: 'record of kept data' };
  const found = await readJson(recordOf(places, name), what).catch((error: unknown) => {
    if (hasCode(error, 'file/not-found')) return undefined;
    throw error;
  });
  if (found === undefined) return undefined;
  return record(found, (why) => {
    throw new SkepError('workload/state-unreadable', {
      message: `the record of kept data of ${name}: ${why}`,
    });
  });
}

/** Names that keep something, sorted. */
export async function keptNames(places: Places): Promise<readonly string[]> {
  const names = (await ifThere(readdir(places.keptDir))) ?? [];
  return names.filter(isWorkloadName).toSorted();
}

/** Remembers where data is going to lie, before it does: what is on an engine is found by this alone. */
export async function noteKept(places: Places, name: string, one: KeptAt, keeper?: string): Promise<void> {
  const known = await readRecord(places, name);
  const others = known.at.filter(({ runtime }) => runtime && runtime.id !== one.runtime?.id);
  const noted = { ...(keeper !== undefined && { keeper }), at: [...others, one] };
  if (JSON.stringify(noted) === JSON.stringify(known)) return;
  // For this user alone, what a server puts there too.
  await mkdir(directoryOf(places, name), { recursive: true, mode: 0o700 });
  // A directory of this machine is found without its record.
  const durable = one.volumes !== undefined || !one.where.every((where) => path.isAbsolute(where));
  await atomicWrite(recordOf(places, name), `${JSON.stringify(noted)}\n`, { durable });
}

/**
 * Remembers what of a name's data is to be removed, before that is begun: who finds the removal cut short finishes it so. A start
 * of the name takes that back, see `noteKept`.
 */
export async function noteGoing(
  places: Places,
  name: string,
  goes: (one: KeptAt) => boolean = () => true,
): Promise<void> {
  const known = await readRecord(places, name);
  const at = known.at.map((one) => (goes(one) ? { ...one, goes: true } : one));
  if (JSON.stringify(at) === JSON.stringify(known.at)) return;
  await atomicWrite(recordOf(places, name), `${JSON.stringify({ ...known, at })}\n`);
}

/** True where a removal of data was cut short. */
export async function isGoing(places: Places, name: string): Promise<boolean> {
  return (await readKept(places, name)).some((one) => one.goes === true);
}

/** As `noteKept` for what a workload keeps on its runtime, if anything. */
export async function noteData(
  config: RunConfig,
  runtime: Pick<Runtime, 'dataPlaces'>,
  { places, owner }: { readonly places: Places; readonly owner: string },
): Promise<void> {
  const { name, data_paths: data = [], runtime: reference } = config;
  if (!keepsData(config)) return;
  const now = profileVolumes(config.permission_profile);
  const note = async (): Promise<void> => {
    const before = (await readKept(places, name)).find((one) => one.runtime?.id === reference?.id);
    const earlier = (before?.volumes ?? []).map((volume) => ({ volume, target: '/', readOnly: true }));
    const volumes = [...new Map([...earlier, ...now].map((one) => [one.volume, one])).values()];
    const where = runtime.dataPlaces({ name, data, volumes, labels: { 'skep.state': owner } });
    const shared = volumes.length === 0 ? {} : { volumes: volumes.map(({ volume }) => volume) };
    const one = { ...(reference && { runtime: reference }), where, ...shared };
    await noteKept(places, name, one, keeperOf(config));
  };
  await settlingVolumes(places, now.length > 0, note);
}

/** True for a workload of which something stays when it is removed. */
export function keepsData(config: Pick<RunConfig, 'data_paths' | 'permission_profile'>): boolean {
  return config.data_paths !== undefined || profileVolumes(config.permission_profile).length > 0;
}

/** For each of its shared volumes the other names that have it or kept it on the same runtime, or may have: see `volumesOf`. */
export async function sharersOf(
  places: Places,
  name: string,
  { runtime, volumes = [] }: KeptAt,
): Promise<ReadonlyMap<string, readonly string[]>> {
  const sharers = new Map<string, readonly string[]>(volumes.map((one) => [one, []]));
  if (volumes.length === 0) return sharers;
  for (const other of new Set([...(await keptNames(places)), ...(await savedNames(places))])) {
    if (other === name) continue;
    const theirs = await volumesOf(places, other, runtime);
    for (const [volume, names] of sharers)
      if (theirs?.includes(volume) !== false) sharers.set(volume, [...names, other]);
  }
  return sharers;
}

/** What a name shares or shared there; undefined where a file of it cannot be read, so that it may be anything. */
async function volumesOf(
  places: Places,
  name: string,
  runtime: RuntimeReference | undefined,
): Promise<readonly string[] | undefined> {
  try {
    const at = (await savedRecord(places, name))?.at ?? [];
    const config = await loadRunConfig(places, name).catch((error: unknown) => {
      if (hasCode(error, 'workload/not-found')) return undefined;
      throw error;
    });
    const has = config?.runtime?.id === runtime?.id ? config?.permission_profile : undefined;
    return [
      ...at.filter((one) => one.runtime?.id === runtime?.id).flatMap(({ volumes = [] }) => volumes),
      ...(has === undefined ? [] : profileVolumes(has).map(({ volume }) => volume)),
    ];
  } catch (error) {
    if (error instanceof SkepError) return undefined;
    throw error;
  }
}

/** Those of its shared volumes that no other name has. Within `settlingVolumes`. */
export async function unsharedVolumes(places: Places, name: string, one: KeptAt): Promise<readonly string[]> {
  return [...(await sharersOf(places, name, one))].flatMap(([volume, names]) =>
    names.length === 0 ? [volume] : [],
  );
}

/** Forgets what was on that runtime, and the directory when nothing else is known. */
export async function forgetKept(
  places: Places,
  name: string,
  gone: RuntimeReference | undefined,
): Promise<void> {
  const known = await readRecord(places, name);
  const left = known.at.filter(({ runtime }) => runtime && runtime.id !== gone?.id);
  if (left.length > 0) {
    return atomicWrite(recordOf(places, name), `${JSON.stringify({ ...known, at: left })}\n`);
  }
  await removeFile(recordOf(places, name));
  await removeUnfinished(directoryOf(places, name));
  await removeEmpty(directoryOf(places, name));
}

const MAX_FILES = 2000;

/** For people: where the data lies, with its size where it is in few enough files of this machine. */
export async function dataText(places: Places, name: string): Promise<string | undefined> {
  const where = (await readKept(places, name)).flatMap((one) => one.where);
  if (where.length === 0) return undefined;
  const size = where.every((one) => path.isAbsolute(one)) ? await sizeOf(where) : undefined;
  return `${where.join(', ')}${size === undefined ? '' : ` (${sizeText(size)})`}`;
}

/** Bytes of the files below, links not followed; undefined when they are too many or not to be seen. */
async function sizeOf(directories: readonly string[]): Promise<number | undefined> {
  let [bytes, seen] = [0, 0];
  const left = [...directories];
  try {
    for (let at = left.pop(); at !== undefined; at = left.pop()) {
      for await (const entry of await opendir(at)) {
        if ((seen += 1) > MAX_FILES) return undefined;
        const file = path.join(at, entry.name);
        if (entry.isDirectory()) left.push(file);
        else bytes += (await lstat(file)).size;
      }
    }
    return bytes;
  } catch {
    return undefined;
  }
}

function sizeText(bytes: number): string {
  const units = ['bytes', 'kB', 'MB', 'GB', 'TB'];
  let [value, unit] = [bytes, 0];
  for (; value >= 1000 && unit < units.length - 1; unit += 1) value /= 1000;
  return `${unit === 0 ? value : value.toPrecision(3)} ${units[unit] ?? ''}`;
}

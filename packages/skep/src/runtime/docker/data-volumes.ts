import type { IncomingMessage } from 'node:http';
import { posix } from 'node:path';
import { Readable } from 'node:stream';
import { listOf, members, nullish, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import { partOf } from '../../permissions/data-paths.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { containerPath } from './containers.ts';
import { refused } from './failure.ts';
import { MANAGED, MANAGED_LABEL, NAME_LABEL, OWNER_LABEL, VOLUME_LABEL } from './labels.ts';
import { readAnswer } from './read-answer.ts';

// What a workload keeps lies in volumes of the engine (decision 0242): it gives them to whoever the server is inside, and
// whoever may use the engine may remove them.

interface DataVolume {
  readonly target: string;
  readonly readOnly: boolean;
  readonly volume: string;
  readonly labels: Readonly<Record<string, string>>;
}

type DataSpec = Pick<WorkloadSpec, 'name' | 'data' | 'volumes' | 'labels'>;

/**
 * The volume of each path that a workload keeps, then those that it shares. A part has no dot, so no two workloads have the
 * same one of the first; what follows an owner tells the two kinds apart.
 */
export function dataVolumes({ name, data = [], volumes = [], labels }: DataSpec): readonly DataVolume[] {
  const owner = labels[OWNER_LABEL] ?? '';
  const common = { [MANAGED_LABEL]: 'true', [OWNER_LABEL]: owner };
  return [
    ...data.map((target) => ({
      target,
      readOnly: false,
      volume: `skep-${owner}-${name}.${partOf(target)}`,
      labels: { ...common, [NAME_LABEL]: name },
    })),
    ...volumes.map(({ volume, target, readOnly }) => ({
      target,
      readOnly,
      volume: sharedVolume(owner, volume),
      labels: { ...common, [VOLUME_LABEL]: volume },
    })),
  ];
}

const sharedVolume = (owner: string, name: string): string => `skep-${owner}.${name}`;

/** They are mounted as their part of the container's body says. */
export function volumeMounts(spec: DataSpec): readonly object[] {
  return dataVolumes(spec).map(({ target, volume, readOnly, labels }) => ({
    Type: 'volume',
    Source: volume,
    Target: target,
    // One that went meanwhile with its last workload is made with the container.
    ...(labels[VOLUME_LABEL] === undefined ? {} : { ReadOnly: readOnly, VolumeOptions: { Labels: labels } }),
  }));
}

/** Makes the volumes that are not there yet, labelled so that they are found without their container. Answers with their names. */
export async function makeVolumes(client: EngineClient, spec: DataSpec): Promise<readonly string[]> {
  const made: string[] = [];
  for (const { volume, labels: Labels } of dataVolumes(spec)) {
    const { status } = await client.ask(`find volume "${volume}"`, { path: `/volumes/${volume}` }, 404);
    if (status !== 404) continue;
    const request = { method: 'POST', path: '/volumes/create', body: { Name: volume, Labels } } as const;
    await client.ask(`make volume "${volume}"`, request);
    made.push(volume);
  }
  return made;
}

/** Idempotent. One that a container uses fails with `runtime/engine-refused`, or stays where `used` says so. */
export async function removeVolumesNamed(
  client: EngineClient,
  names: readonly string[],
  used: 'fails' | 'stays' = 'fails',
): Promise<void> {
  const also = used === 'stays' ? [404, 409] : [404];
  for (const name of names) {
    const path = `/volumes/${encodeURIComponent(name)}`;
    await client.ask(`remove volume "${name}"`, { method: 'DELETE', path }, ...also);
  }
}

/** Whose data is asked for: that of a workload, and of volumes that it shares. */
export interface Keeper {
  readonly name: string;
  readonly owner: string;
  readonly shared: readonly string[];
}

/** True unless nothing is in them, which only the container can tell. */
export async function holdsData(client: EngineClient, { name, owner, shared }: Keeper): Promise<boolean> {
  for (const volume of shared.map((one) => sharedVolume(owner, one))) {
    const { status } = await client.ask(`find volume "${volume}"`, { path: `/volumes/${volume}` }, 404);
    if (status !== 404) return true;
  }
  const all = await volumesOf(client, name, owner);
  const empty = all.length === 0 ? [] : await emptyVolumes(client, name);
  return all.some((volume) => !empty.includes(volume));
}

/** Removes all volumes of that workload, whatever paths they were for, and those shared ones. */
export async function removeVolumes(client: EngineClient, { name, owner, shared }: Keeper): Promise<void> {
  const own = await volumesOf(client, name, owner);
  await removeVolumesNamed(client, [...own, ...shared.map((one) => sharedVolume(owner, one))]);
}

const volumesShape = members({
  Volumes: nullish(listOf(members({ Name: text, Labels: nullish(recordOf(text)) }))),
});

async function volumesOf(client: EngineClient, name: string, owner: string): Promise<string[]> {
  const filters = { label: [MANAGED, `${NAME_LABEL}=${name}`, `${OWNER_LABEL}=${owner}`] };
  const { body } = await client.ask('list volumes', { path: '/volumes', filters });
  const ours = (readAnswer(volumesShape, body).Volumes ?? []).filter(
    // Not every engine knows every filter.
    ({ Labels }) => Labels?.[NAME_LABEL] === name && Labels[OWNER_LABEL] === owner,
  );
  return ours.map(({ Name }) => Name);
}

const MODE_AT = 100;
const UID_AT = 108;
/** What an engine makes where an image has nothing of its own. */
const OF_ROOT_ALONE = 0o755;
const OPEN = 0o777;

/**
 * Lets any user write in the volumes that a container shares, where they are as an engine makes them: else only root could,
 * which few servers are. What the image has in its place decides for itself, and a read-only container changes nothing.
 */
export async function openVolumes(client: EngineClient, spec: WorkloadSpec): Promise<void> {
  if (spec.readOnly === true) return;
  for (const { target, readOnly } of spec.volumes ?? []) {
    if (readOnly) continue;
    const head = await headerOf(client, spec.name, target);
    if (head === undefined || numberAt(head, UID_AT) !== 0) continue;
    if ((numberAt(head, MODE_AT) & OPEN) !== OF_ROOT_ALONE) continue;
    const [directory, entry] = [posix.dirname(target), `${posix.basename(target)}/`];
    const request = {
      method: 'PUT',
      path: containerPath(spec.name, '/archive'),
      query: { path: directory },
      body: Readable.from([directoryTar(entry, OPEN)]),
    } as const;
    // Where an engine does not do it, the server is told by its own error.
    await client.call(request);
  }
}

/** The first header of what is at a path inside; undefined where that cannot be told. */
async function headerOf(client: EngineClient, name: string, target: string): Promise<Buffer | undefined> {
  const request = { path: containerPath(name, '/archive'), query: { path: target } };
  const tar = await client
    .stream(request, (answer) => refused('read a volume', answer))
    .catch(() => undefined);
  if (tar === undefined) return undefined;
  try {
    for await (const chunk of tar) return (chunk as Buffer).length < BLOCK ? undefined : (chunk as Buffer);
  } finally {
    tar.destroy();
  }
  return undefined;
}

const numberAt = (header: Buffer, at: number): number => Number.parseInt(textOf(header, at, 8), 8);

/** A tar archive of one directory of root (POSIX.1-2017 pax, ustar header). */
function directoryTar(name: string, mode: number): Buffer {
  const tar = Buffer.alloc(3 * BLOCK);
  tar.write(name);
  tar.write(`${mode.toString(8).padStart(7, '0')}\0`, MODE_AT);
  for (const [at, length] of [
    [UID_AT, 7],
    [116, 7],
    [124, 11],
    [136, 11],
  ] as const)
    tar.write(`${'0'.repeat(length)}\0`, at);
  tar.write('5', 156);
  tar.write('ustar\x0000', 257);
  tar.fill(' ', 148, 156);
  const sum = tar.subarray(0, BLOCK).reduce((all, byte) => all + byte, 0);
  tar.write(`${sum.toString(8).padStart(6, '0')}\0 `, 148);
  return tar;
}

const mountsShape = members({
  Config: members({ Labels: nullish(recordOf(text)) }),
  Mounts: nullish(listOf(members({ Type: text, Name: nullish(text), Destination: text }))),
});

/** The data and shared volumes of a container in which nothing is; only while the container is there the engine tells. */
export async function emptyVolumes(client: EngineClient, container: string): Promise<readonly string[]> {
  const at = `/containers/${encodeURIComponent(container)}`;
  const { status, body } = await client.ask(`inspect "${container}"`, { path: `${at}/json` }, 404);
  if (status === 404) return [];
  const { Config, Mounts } = readAs(mountsShape, body) ?? {};
  const owner = Config?.Labels?.[OWNER_LABEL] ?? '';
  const ours = [`skep-${owner}-${container}.`, sharedVolume(owner, '')];
  const empty: string[] = [];
  for (const { Type, Name, Destination } of Mounts ?? []) {
    if (Type !== 'volume' || !ours.some((one) => Name?.startsWith(one))) continue;
    const request = { path: `${at}/archive`, query: { path: `${Destination}/.` } };
    // What cannot be told is kept.
    const tar = await client
      .stream(request, (answer) => refused('read a volume', answer))
      .catch(() => undefined);
    if (tar !== undefined && !(await holdsFiles(tar)) && Name) empty.push(Name);
  }
  return empty;
}

const BLOCK = 512;
/** More than the directory itself and the empty file that images of packages begin with take. */
const LOOKED_AT = 16 * BLOCK;

/** True when a tar stream (POSIX.1-2017 pax, ustar header) has more in it than its directory, an empty `.keep`, and `nothing`. */
export async function holdsFiles(tar: IncomingMessage, nothing?: RegExp): Promise<boolean> {
  let bytes = Buffer.alloc(0);
  try {
    for await (const chunk of tar) {
      bytes = Buffer.concat([bytes, chunk as Buffer]);
      if (bytes.length >= LOOKED_AT) break;
    }
  } catch {
    return true;
  } finally {
    tar.destroy();
  }
  for (let at = 0; at + BLOCK <= bytes.length;) {
    const name = textOf(bytes, at, 100);
    if (name === '') return false;
    const size = Number.parseInt(textOf(bytes, at + 124, 12), 8) || 0;
    const isDirectory = bytes[at + 156] === '5'.charCodeAt(0) && !name.replace(/\/$/, '').includes('/');
    const isNothing = isDirectory || (name.endsWith('/.keep') && size === 0) || nothing?.test(name) === true;
    if (!isNothing) return true;
    at += BLOCK + Math.ceil(size / BLOCK) * BLOCK;
  }
  return bytes.length >= LOOKED_AT;
}

const textOf = (bytes: Buffer, at: number, length: number): string =>
  bytes
    .toString('latin1', at, at + length)
    .replace(/\0.*$/s, '')
    .trim();

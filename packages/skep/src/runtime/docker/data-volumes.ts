import type { IncomingMessage } from 'node:http';
import { listOf, members, nullish, readAs, recordOf, text } from '@skep/core/settings/shape.ts';
import { partOf } from '../../permissions/data-paths.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { refused } from './failure.ts';
import { MANAGED, MANAGED_LABEL, NAME_LABEL, OWNER_LABEL } from './labels.ts';
import { readAnswer } from './read-answer.ts';

// What a workload keeps lies in volumes of the engine (decision 0242): it gives them to whoever the server is inside, and
// whoever may use the engine may remove them.

type DataSpec = Pick<WorkloadSpec, 'name' | 'data' | 'labels'>;

/** The volume of each path that a workload keeps. A part has no dot, so no two workloads share one. */
export function dataVolumes({ name, data = [], labels }: DataSpec) {
  const owner = labels[OWNER_LABEL] ?? '';
  return data.map((target) => ({ target, volume: `skep-${owner}-${name}.${partOf(target)}` }));
}

/** They are mounted as their part of the container's body says. */
export function volumeMounts(spec: DataSpec): readonly object[] {
  return dataVolumes(spec).map(({ target, volume }) => ({ Type: 'volume', Source: volume, Target: target }));
}

/** Makes the volumes that are not there yet, labelled so that they are found without their container. Answers with their names. */
export async function makeVolumes(client: EngineClient, spec: DataSpec): Promise<readonly string[]> {
  const made: string[] = [];
  for (const { volume } of dataVolumes(spec)) {
    const { status } = await client.ask(`find volume "${volume}"`, { path: `/volumes/${volume}` }, 404);
    if (status !== 404) continue;
    const Labels = {
      [MANAGED_LABEL]: 'true',
      [NAME_LABEL]: spec.name,
      [OWNER_LABEL]: spec.labels[OWNER_LABEL] ?? '',
    };
    const request = { method: 'POST', path: '/volumes/create', body: { Name: volume, Labels } } as const;
    await client.ask(`make volume "${volume}"`, request);
    made.push(volume);
  }
  return made;
}

/** Idempotent. Fails with `runtime/engine-refused` for one that a container uses. */
export async function removeVolumesNamed(client: EngineClient, names: readonly string[]): Promise<void> {
  for (const name of names) {
    const path = `/volumes/${encodeURIComponent(name)}`;
    await client.ask(`remove volume "${name}"`, { method: 'DELETE', path }, 404);
  }
}

/** True unless nothing is in them, which only the container can tell. */
export async function holdsData(client: EngineClient, name: string, owner: string): Promise<boolean> {
  const all = await volumesOf(client, name, owner);
  const empty = all.length === 0 ? [] : await emptyVolumes(client, name);
  return all.some((volume) => !empty.includes(volume));
}

/** Removes all volumes of that workload, whatever paths they were for. */
export async function removeVolumes(client: EngineClient, name: string, owner: string): Promise<void> {
  await removeVolumesNamed(client, await volumesOf(client, name, owner));
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

const mountsShape = members({
  Config: members({ Labels: nullish(recordOf(text)) }),
  Mounts: nullish(listOf(members({ Type: text, Name: nullish(text), Destination: text }))),
});

/** The data volumes of a container in which nothing is; only while the container is there the engine tells. */
export async function emptyVolumes(client: EngineClient, container: string): Promise<readonly string[]> {
  const at = `/containers/${encodeURIComponent(container)}`;
  const { status, body } = await client.ask(`inspect "${container}"`, { path: `${at}/json` }, 404);
  if (status === 404) return [];
  const { Config, Mounts } = readAs(mountsShape, body) ?? {};
  const prefix = `skep-${Config?.Labels?.[OWNER_LABEL] ?? ''}-${container}.`;
  const empty: string[] = [];
  for (const { Type, Name, Destination } of Mounts ?? []) {
    if (Type !== 'volume' || Name?.startsWith(prefix) !== true) continue;
    const request = { path: `${at}/archive`, query: { path: `${Destination}/.` } };
    // What cannot be told is kept.
    const tar = await client
      .stream(request, (answer) => refused('read a volume', answer))
      .catch(() => undefined);
    if (tar !== undefined && !(await holdsFiles(tar))) empty.push(Name);
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

import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJsonText } from '@skep/core/files/read-limited.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { DEFAULT_GROUP, isGroupName } from '../settings/group-name.ts';

/** A group as its file keeps it (docs/behaviour/run.md#groups). Which workloads are in it, their configurations say. */
export interface Group {
  readonly name: string;
  /** MCP clients that read what the workloads of this group are. */
  readonly registered_clients: readonly string[];
  /** Members this release does not act on, in their original form. */
  readonly rest: Readonly<Record<string, unknown>>;
}

const MAX_BYTES = 1024 * 1024;
const WAIT_MS = 5_000;
const MAX_SHOWN = 100;

const stored = shape.members({
  name: shape.text,
  registered_clients: shape.orEmpty(shape.listOf(shape.text), []),
});

const pathOf = (places: Places, name: string): string => join(places.groupsDir, `${name}.json`);

/** Names of all groups, sorted; `default` is always among them. Files are not looked into. */
export async function groupNames(places: Pick<Places, 'groupsDir'>): Promise<readonly string[]> {
  const files = (await ifThere(readdir(places.groupsDir))) ?? [];
  const names = files.filter((file) => file.endsWith('.json')).map((file) => file.slice(0, -'.json'.length));
  return [...new Set([DEFAULT_GROUP, ...names.filter(isGroupName)])].toSorted();
}

/**
 * Fails with `group/not-found`, or with `group/unreadable` when its file is damaged, which nothing ever overwrites.
 * `default` needs no file.
 */
export async function readGroup(places: Places, name: string): Promise<Group> {
  if (!isGroupName(name)) throw await notFound(places, name);
  const path = pathOf(places, name);
  try {
    const { value } = await readJsonText(path, { maxBytes: MAX_BYTES, what: 'group file' });
    const { registered_clients } = stored(value, (why, ...where) => {
      const key = where.length === 0 ? '' : `"${where.join('.')}": `;
      throw new SkepError('group/unreadable', { message: `group file "${path}" is damaged: ${key}${why}` });
    });
    const known = ['name', 'registered_clients'];
    const rest = Object.entries(isRecord(value) ? value : {}).filter(([key]) => !known.includes(key));
    return { name, registered_clients, rest: Object.fromEntries(rest) };
  } catch (error) {
    if (!hasCode(error, 'file/not-found')) throw asUnreadable(error);
    if (name === DEFAULT_GROUP) return { name, registered_clients: [], rest: {} };
    throw await notFound(places, name);
  }
}

/** Fails as `readGroup` does. */
export async function requireGroup(places: Places, name: string): Promise<void> {
  if (name !== DEFAULT_GROUP) await readGroup(places, name);
}

/** Makes a group; of several that make one of the same name at once, one does. Fails with `group/exists`. */
export async function createGroup(places: Places, name: string): Promise<void> {
  if (!isGroupName(name)) {
    throw new SkepError('usage/invalid-value', { message: `invalid group name ${shown(name)}`, hint: RULE });
  }
  await whileGroupIsHeld(places, name, async () => {
    if ((await groupNames(places)).includes(name))
      throw new SkepError('group/exists', { message: `group '${name}' already exists` });
    await writeGroup(places, { name, registered_clients: [], rest: {} });
  });
}

/**
 * Writes what `change` makes of a group; nobody else changes it meanwhile. Fails as `readGroup` does.
 *
 */
export async function updateGroup(
  places: Places,
  name: string,
  change: (group: Group) => Group,
): Promise<void> {
  await whileGroupIsHeld(places, name, async () => {
    await writeGroup(places, change(await readGroup(places, name)));
  });
}

/** Removes the file of a group after `empty` has taken care of what is in it; no workload joins it meanwhile. */
export async function removeGroup(places: Places, name: string, empty: () => Promise<void>): Promise<void> {
  await whileGroupIsHeld(places, name, async () => {
    await readGroup(places, name);
    await empty();
    await removeFile(pathOf(places, name));
  });
}

/** Runs `action`, which puts a workload into a group, while the group is there. Fails as `readGroup` does. */
export async function joiningGroup(places: Places, name: string, action: () => Promise<void>): Promise<void> {
  if (name === DEFAULT_GROUP) return action();
  const lock = { waitMs: WAIT_MS, what: `group '${name}'`, shared: true };
  await withLock(lockPath(places, name), lock, async () => {
    await readGroup(places, name);
    await action();
  });
}

/** How a group may be named. */
export const RULE = 'use lower-case letters, digits, _ and -, with single spaces between words';

const lockPath = (places: Places, name: string): string => join(places.locksDir, `group.${name}.lock`);

function whileGroupIsHeld(places: Places, name: string, action: () => Promise<void>): Promise<void> {
  return withLock(lockPath(places, name), { waitMs: WAIT_MS, what: `group '${name}'` }, action);
}

async function writeGroup(places: Places, { rest, ...group }: Group): Promise<void> {
  const text = `${JSON.stringify({ ...group, ...rest }, null, 2)}\n`;
  await atomicWrite(pathOf(places, group.name), text, { mode: 0o600 });
}

async function notFound(places: Places, name: string): Promise<SkepError> {
  const otherwise = isGroupName(name)
    ? `create it with skep group create ${quoted(name)}`
    : 'see the groups with skep group list';
  return new SkepError('group/not-found', {
    message: `group ${isGroupName(name) ? `'${name}'` : shown(name)} does not exist`,
    hint: suggestion(name.slice(0, MAX_SHOWN), await groupNames(places), otherwise),
  });
}

/** As a shell takes it. */
export const quoted = (name: string): string => (name.includes(' ') ? `"${name}"` : name);

/** What is no group name, as a message can show it. */
const shown = (name: string): string => JSON.stringify(printable(name.slice(0, MAX_SHOWN)));

function asUnreadable(error: unknown): unknown {
  if (!(error instanceof SkepError) || error.code === 'group/unreadable') return error;
  return new SkepError('group/unreadable', { message: error.message, cause: error });
}

import { join } from 'node:path';
import { atomicWrite, removeFile } from '@skep/core/files/atomic-write.ts';
import { withLock } from '@skep/core/files/lock.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJson } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { isWorkloadName } from '../settings/workload-name.ts';

const MAX_BYTES = 256 * 1024;
/** Names that are remembered; the one that was started longest ago is forgotten first. */
const MAX_NAMES = 1_000;
const LOCK_MS = 5_000;

/** No workload's: a name begins with a letter or digit. */
const fileOf = (places: Places): string => join(places.keptDir, '.addresses.json');
const lockOf = (places: Places): string => join(places.locksDir, 'addresses.lock');

/**
 * The port that each name had when it was last started, also after `rm`: the same name gets the same address again.
 * What is damaged counts for nothing, as ports can be drawn anew.
 */
export async function keptPorts(places: Places): Promise<ReadonlyMap<string, number>> {
  const file: unknown = await readJson(fileOf(places), { maxBytes: MAX_BYTES }).catch(() => undefined);
  const isPort = (value: unknown): value is number =>
    Number.isInteger(value) && Number(value) > 0 && Number(value) <= 65_535;
  return new Map(
    Object.entries(isRecord(file) ? file : {}).filter(
      (entry): entry is [string, number] => isWorkloadName(entry[0]) && isPort(entry[1]),
    ),
  );
}

/** Remembers the port of a name; forgets it where that is undefined. */
export async function keepPort(places: Places, name: string, port: number | undefined): Promise<void> {
  if ((await keptPorts(places)).get(name) === port) return;
  await withLock(lockOf(places), { waitMs: LOCK_MS, what: 'the ports of workloads' }, async () => {
    const others = [...(await keptPorts(places))].filter(([other]) => other !== name);
    const kept = port === undefined ? others : [...others.slice(1 - MAX_NAMES), [name, port]];
    await atomicWrite(fileOf(places), `${JSON.stringify(Object.fromEntries(kept), null, 2)}\n`, {
      mode: 0o600,
    });
  });
}

/** Forgets the ports of all names. */
export async function forgetPorts(places: Places): Promise<void> {
  await removeFile(fileOf(places));
}

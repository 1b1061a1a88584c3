import { realpathSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite, removeEmpty } from '@skep/core/files/atomic-write.ts';
import type { Places } from '@skep/core/files/places.ts';
import { readJsonAtOnce } from '@skep/core/files/read-at-once.ts';
import { members, oneOf, optional, text, wholeNumber, type ShapeType } from '@skep/core/settings/shape.ts';
import type { ProcessIdentity } from './process-identity.ts';

/** Where the one address of all workloads is now. */
export type FrontDoor =
  | { readonly is: 'open'; readonly port: number; readonly process: ProcessIdentity }
  /** Another program has the port; `why` is a line that names it, and the setting. */
  | { readonly is: 'closed'; readonly why: string }
  /** The setting says that there is none. */
  | { readonly is: 'off' }
  /** No supervisor is up. */
  | { readonly is: 'resting' };

const fileShape = members({
  is: oneOf('open', 'closed', 'off'),
  port: wholeNumber(0),
  why: optional(text),
  /** The supervisor that wrote it. */
  pid: wholeNumber(1),
  started: text,
  /** Real path of its state directory: in a copy of it the door is another's. */
  state: text,
});
export type FrontRecord = ShapeType<typeof fileShape>;

const MAX_BYTES = 16 * 1024;
const fileOf = (places: Places): string => join(places.supervisorDir, 'front-door.json');

/** The URL of a workload behind the open door; `own` is that of its own port. */
export function frontUrl(port: number, name: string, own: string): string {
  const { pathname, hash } = new URL(own);
  return `http://127.0.0.1:${port}/${name}${pathname}${hash}`;
}

export interface Looking {
  readonly places: Places;
  readonly isAlive: (process: ProcessIdentity) => boolean;
}

/** What the supervisor of these places says of its front door. Never fails: what cannot be read was written by none. */
export function readFrontDoor({ places, isAlive }: Looking): FrontDoor {
  try {
    const { value } = readJsonAtOnce(fileOf(places), { maxBytes: MAX_BYTES });
    const said = fileShape(value, () => {
      throw new SkepError('supervisor/protocol');
    });
    const process = { pid: said.pid, started: said.started };
    if (said.state !== realpathSync.native(places.stateDir) || !isAlive(process)) return { is: 'resting' };
    if (said.is === 'open') return { is: 'open', port: said.port, process };
    return said.is === 'off' ? { is: 'off' } : { is: 'closed', why: said.why ?? '' };
  } catch {
    return { is: 'resting' };
  }
}

/** For the supervisor alone. Of one that lives, so that nothing of it has to outlive the machine. */
export async function writeFrontDoor(places: Places, record: FrontRecord): Promise<void> {
  await atomicWrite(fileOf(places), JSON.stringify(record), { mode: 0o600, durable: false });
}

export async function forgetFrontDoor(places: Places): Promise<void> {
  await rm(fileOf(places), { force: true });
  await removeEmpty(places.supervisorDir);
}

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readFrontDoor } from '../supervisor/front-state.ts';
import type { Context } from './context.ts';

/** How long a supervisor that has just come up may take to open it. */
const OPENING_MS = 5_000;
const POLL_MS = 20;

export interface FrontDoorWait extends Pick<Context, 'places' | 'isAlive' | 'clock' | 'signal'> {
  /** Has a supervisor up: `SupervisorClient.settle`. */
  readonly wake: () => Promise<void>;
}

/**
 * The port of the open front door, for what writes addresses down that have to last. Starts a supervisor where none is
 * up. Fails with `front-door/closed`, naming who has the port and the setting.
 */
export async function requireFrontDoor(wait: FrontDoorWait): Promise<number> {
  const { clock, signal } = wait;
  const deadline = clock.elapsed() + OPENING_MS;
  for (let isFirst = true; ; isFirst = false) {
    const door = readFrontDoor(wait);
    if (door.is === 'open') return door.port;
    if (door.is === 'closed') throw new SkepError('front-door/closed', { message: door.why });
    if (door.is === 'off') {
      const message = 'there is no front door: its port is set to 0';
      throw new SkepError('front-door/closed', { message });
    }
    if (isFirst) await wait.wake();
    if (clock.elapsed() >= deadline) throw new SkepError('front-door/closed');
    await clock.sleep(POLL_MS, signal);
  }
}

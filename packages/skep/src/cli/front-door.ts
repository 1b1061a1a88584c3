import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readFrontDoor } from '../supervisor/front-state.ts';
import type { Context } from './context.ts';

/** How long a supervisor that has just come up may take to open it. */
const OPENING_MS = 5_000;
const POLL_MS = 20;

/**
 * The port of the open front door, for what writes addresses down that have to last. Starts a supervisor where none is
 * up. Fails with `front-door/closed`, naming who has the port and the setting.
 */
export async function requireFrontDoor(context: Context): Promise<number> {
  const deadline = context.clock.now() + OPENING_MS;
  let isAsked = false;
  for (;;) {
    const door = await readFrontDoor(context);
    if (door.is === 'open') return door.port;
    if (door.is === 'closed') throw new SkepError('front-door/closed', { message: door.why });
    if (door.is === 'off') {
      throw new SkepError('front-door/closed', {
        message: 'there is no front door: its port is set to 0',
        hint: 'give it a port with skep config set front-port 4243',
      });
    }
    if (context.clock.now() >= deadline) throw new SkepError('front-door/closed');
    if (!isAsked) {
      isAsked = true;
      const { SupervisorClient } = await import('../supervisor/client.ts');
      await new SupervisorClient(context).settle({ signal: context.signal });
    }
    await context.clock.sleep(POLL_MS, context.signal);
  }
}

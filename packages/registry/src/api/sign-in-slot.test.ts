import { expect, it } from 'vitest';
import { TimerClock } from '../sync/timer-clock.fixture.ts';
import { OPEN_DOOR, type SignIn } from './sign-in.ts';
import { SignInSlot } from './sign-in-slot.ts';

const closed: string[] = [];
const door = (name: string): SignIn =>
  ({ kind: 'bearer', close: () => closed.push(name) }) as unknown as SignIn;

it('lets requests that wait for a replaced sign-in finish, and then closes it', () => {
  const clock = new TimerClock();
  const [first, second] = [door('first'), door('second')];
  const slot = new SignInSlot(first, clock);
  slot.replace(second);
  expect(slot.current).toBe(second);
  clock.pass(29_000);
  expect(closed).toEqual([]);
  clock.pass(1_000);
  expect(closed).toEqual(['first']);
  slot.replace(OPEN_DOOR);
  slot.close();
  expect([closed, clock.waiting]).toEqual([['first', 'second'], 0]);
});

import { expect, test, vi } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { fakeIssuer, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { oauthWith } from '../api.fixture.ts';
import { OPEN_SIGN_IN, openSignIn, SignInSlot, type SignIn } from './sign-in.ts';

const closed: string[] = [];
const door = (name: string): SignIn =>
  ({ kind: 'bearer', close: () => closed.push(name) }) as unknown as SignIn;

test('lets requests that wait for a replaced sign-in finish, and then closes it', () => {
  const clock = manualClock();
  const [first, second] = [door('first'), door('second')];
  const slot = new SignInSlot(first, clock);
  slot.replace(second);
  expect(slot.current).toBe(second);
  clock.pass(29_000);
  expect(closed).toEqual([]);
  clock.pass(1_000);
  expect(closed).toEqual(['first']);
  slot.replace(OPEN_SIGN_IN);
  slot.close();
  expect([closed, clock.waiting]).toEqual([['first', 'second'], 0]);
});

test('names the identity providers that did not answer when they were asked, until they do', async () => {
  const issuer = fakeIssuer([await signingKey('k1')]);
  issuer.broken.set('/jwks', 500);
  const services = { clock: manualClock(), random: () => 0, log: silentLog, fetch: issuer };
  const slot = new SignInSlot(await openSignIn(oauthWith({ kind: 'auth-only' }), services), manualClock());
  // Nobody was asked yet.
  expect([slot.away(), issuer.requests]).toEqual([[], []]);
  slot.askProviders();
  await vi.waitFor(() => expect(slot.away()).toEqual(['test']));
  issuer.broken.clear();
  await vi.waitFor(() => expect(slot.away()).toEqual([]));
  slot.close();
});

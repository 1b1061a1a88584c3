import { expect, test } from 'vitest';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { Sessions, type Session } from './sessions.ts';

const sessions = () => {
  const clock = manualClock();
  const left: string[] = [];
  const all = new Sessions({
    clock,
    sessionTtlMs: 1_000,
    backend: { leave: ({ key }) => void left.push(key) },
  });
  const create = (principal = 'me'): Session => {
    const session = all.create({ principal, version: '2025-11-25', abilities: new Set() });
    if (session === undefined) throw new TypeError('no room');
    return session;
  };
  return { clock, left, all, create };
};

test('a session is unknown to anybody but its principal', () => {
  const { all, create } = sessions();
  const { key } = create('me');
  expect(all.find(key, 'you')).toBeUndefined();
  expect(all.find(key, 'me')?.key).toBe(key);
});

test('use keeps a session, idleness ends it', () => {
  const { clock, left, all, create } = sessions();
  const [used, idle] = [create().key, create().key];
  clock.pass(900);
  all.find(used, 'me');
  clock.pass(900);
  expect(left).toEqual([idle]);
  expect(all.find(used, 'me')).toBeDefined();
});

test('the clock of the machine, set by hours, ends no session and keeps none', () => {
  const { clock, left, all, create } = sessions();
  const { key } = create();
  clock.set(8 * 3_600_000);
  clock.pass(900);
  expect(all.find(key, 'me')).toBeDefined();
  clock.set(-16 * 3_600_000);
  clock.pass(2_000);
  expect(left).toEqual([key]);
});

test('a session with a call in flight is not idle, however long the call takes', () => {
  const { clock, left, all, create } = sessions();
  const session = create();
  session.unanswered = 1;
  clock.pass(10_000);
  expect(all.find(session.key, 'me')).toBe(session);
  clock.pass(10_000);
  session.unanswered = 0;
  clock.pass(400);
  expect(all.find(session.key, 'me')).toBe(session);
  clock.pass(1_600);
  expect(left).toEqual([session.key]);
});

test('a session with a call in flight does not give way to new ones', () => {
  const { left, all, create } = sessions();
  while (all.size < 4096) create().unanswered = 1;
  expect(all.create({ principal: 'me', version: '2025-11-25', abilities: new Set() })).toBeUndefined();
  expect(left).toEqual([]);
});

test('when there are too many, the longest idle one gives way', () => {
  const { clock, left, all, create } = sessions();
  const first = create();
  clock.pass(1);
  const second = create();
  while (all.size < 4096) create();
  clock.pass(1);
  all.find(first.key, 'me');
  create();
  expect(left).toEqual([second.key]);
});

test('whoever begins many sessions drives out nobody but themselves', () => {
  const { clock, left, all, create } = sessions();
  const mine = create('me');
  clock.pass(1);
  while (all.size < 4096) create('you').unanswered = 1;
  const opening = { version: '2025-11-25', abilities: new Set<never>() };
  expect(all.create({ ...opening, principal: 'you' })).toBeUndefined();
  expect(left).toEqual([]);
  const another = create('me');
  expect([mine, another].map(({ key }) => all.find(key, 'me') !== undefined)).toEqual([true, true]);
  expect(left).toHaveLength(1);
});

test('ending twice is ending once', () => {
  const { left, all, create } = sessions();
  const session = create();
  all.end(session);
  all.end(session);
  all.close();
  expect(left).toEqual([session.key]);
});

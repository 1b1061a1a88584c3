import { expect, test } from 'vitest';
import { SessionOwners } from './session-owners.ts';

test("a session is the first's who has it, until it is forgotten", () => {
  const owners = new SessionOwners();
  expect(owners.isOpenTo('7', 'bob')).toBe(true);
  expect(owners.has('7', 'bob')).toBe(false);
  owners.claim('7', 'alice');
  owners.claim('7', 'bob');
  expect(owners.isOpenTo('7', 'bob')).toBe(false);
  expect(owners.isOpenTo('7', 'alice')).toBe(true);
  expect(owners.has('7', 'alice')).toBe(true);
  owners.forget('7');
  expect(owners.isOpenTo('7', 'bob')).toBe(true);
});

test('whoever begins many drives out nobody but themselves', () => {
  const owners = new SessionOwners(4);
  owners.claim('a', 'alice');
  for (let id = 0; id < 20; id += 1) owners.claim(String(id), 'bob');
  expect(owners.isOpenTo('a', 'bob')).toBe(false);
  expect(owners.has('19', 'bob')).toBe(true);
  expect(owners.has('0', 'bob')).toBe(false);
});

import { expect, test } from 'vitest';
import { sharesProcessors } from './settings.ts';

test.each([
  ['localhost', 2, true],
  ['127.0.0.1', 1, true],
  ['::1', 2, true],
  ['/var/run/postgresql', 2, true],
  ['localhost', 3, false],
  ['db.example', 2, false],
  ['10.0.0.7', 1, false],
])('a server at %s, with %i processors here: %s', (host, processors, shares) => {
  expect(sharesProcessors({ host }, processors)).toBe(shares);
});

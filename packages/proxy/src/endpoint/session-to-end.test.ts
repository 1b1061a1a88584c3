import { expect, test } from 'vitest';
import { sessionToEnd } from './session-to-end.ts';

interface One {
  readonly principal: string;
  readonly at: number;
  readonly idle?: true;
}

const ended = (sessions: readonly One[], principal: string): number | undefined =>
  sessionToEnd(sessions, principal, { isIdle: ({ idle }) => idle === true, lastSeen: ({ at }) => at })?.at;

const mine = (at: number, idle?: true): One => ({ principal: 'me', at, ...(idle && { idle }) });
const yours = (at: number, idle?: true): One => ({ principal: 'you', at, ...(idle && { idle }) });

test.each([
  ['the longest idle one, where all are of one', [mine(1), mine(3, true), mine(2, true)], 'me', 2],
  ['none in use, where all are of one', [mine(1), mine(2)], 'me', undefined],
  ['one of who has most, though others are idle', [mine(1, true), yours(4), yours(2), yours(3)], 'me', 2],
  ['first an idle one of these', [mine(1, true), yours(2), yours(3, true), yours(4)], 'me', 3],
  ['none of others for who has most', [mine(1, true), yours(2), yours(3)], 'you', undefined],
  ['the own one, where others have as many', [mine(2, true), yours(1, true)], 'me', 2],
  ['none where there are none', [], 'me', undefined],
])('%s gives way', (_what, sessions, principal, at) => {
  expect(ended(sessions, principal)).toBe(at);
});

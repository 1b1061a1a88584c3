import { expect, test } from 'vitest';
import { toListItem } from './to-json.ts';
import { ageText, formatOfStatus, shortPackage, statusText, timeText } from './to-text.ts';

const then = new Date('2026-01-02T03:04:05.678Z');
const later = (seconds: number): Date => new Date(then.getTime() + seconds * 1000);

test.each([
  [-5, '0s'],
  [59.9, '59s'],
  [60, '1m'],
  [3599, '59m'],
  [3600, '1h'],
  [86_399, '23h'],
  [86_400 * 400, '400d'],
])('%d seconds are an age of %s', (seconds, text) => {
  expect(ageText(then, later(seconds))).toBe(text);
});

test('what has no time has no text for it, and null in JSON', () => {
  expect(ageText(undefined, then)).toBe('');
  expect(timeText(undefined)).toBe('');
  expect(timeText(then)).toBe('2026-01-02 03:04:05');
  const known = {
    name: 'a1',
    package: 'fake:1',
    url: '',
    port: 1,
    transport: 'stdio',
    group: 'default',
    labels: {},
  };
  const item = toListItem({ ...known, status: 'unknown' }, null);
  expect(item).toMatchObject({ created_at: null, started_at: null });
  expect(toListItem({ ...known, status: 'running', createdAt: then }, null)).toMatchObject({
    created_at: '2026-01-02T03:04:05.678Z',
    started_at: null,
  });
});

test.each([
  [`r.example/a:1@sha256:${'0123456789abcdef'.repeat(4)}`, 'r.example/a:1@sha256:0123456789ab'],
  ['r.example/a@sha256:12', 'r.example/a@sha256:12'],
  ['npx://@a/b@1.0.0', 'npx://@a/b@1.0.0'],
])('a narrow table shows %s as %s', (name, short) => {
  expect(shortPackage(name)).toBe(short);
});

test.each([
  ['policy_stopped', '⊘ policy_stopped', 'red'],
  ['unauthenticated', '⚠ unauthenticated', 'yellow'],
  ['auth_retrying', '⚠ auth_retrying', 'yellow'],
  ['unhealthy', 'unhealthy', 'yellow'],
  ['stopped', 'stopped', 'dim'],
] as const)(
  '%s is shown as %s, in its colour: what somebody else decided has an icon',
  (word, text, format) => {
    expect(statusText(word)).toBe(text);
    expect(formatOfStatus(text)).toBe(format);
  },
);

test.each([
  ['running', 'green'],
  ['stopped', 'dim'],
  ['error', 'red'],
  ['constructor', undefined],
])('%s looks %s', (status, format) => {
  expect(formatOfStatus(status)).toBe(format);
});

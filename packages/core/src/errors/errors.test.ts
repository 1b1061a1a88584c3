import { expect, test, describe } from 'vitest';
import { CODES, type Code, type CodeRow } from './codes.ts';
import { hasCode, SkepError } from './skep-error.ts';
import { tellsAll, toHttp } from './to-http.ts';
import { toTerminal } from './to-terminal.ts';

const codes = Object.keys(CODES) as Code[];
const plain = { color: false, debug: false };

describe.each(codes)('%s', (code) => {
  const row: CodeRow = CODES[code];

  test('has a complete row', () => {
    expect(code).toMatch(/^[a-z]+(?:-[a-z]+)*\/[a-z][a-z0-9-]*$/u);
    // 200: an answer of MCP, whose error is in its body.
    if (row.httpStatus !== 200) expect(row.httpStatus).toBeGreaterThanOrEqual(400);
    expect(row.httpStatus).toBeLessThan(600);
    expect(row.exitCode).toBeGreaterThan(0);
    expect(row.title).toMatch(/^\S.*[^.\s]$/u);
    expect(row.hint).toMatch(/^\S.*(?:[^.\s]|\.\.)$/u);
  });

  test('renders for terminal and HTTP', () => {
    const error = new SkepError(code);
    expect(toTerminal(error, plain)).toEqual({
      text: `Error: ${row.title}; ${row.hint}\n`,
      exitCode: row.exitCode,
    });
    expect(toHttp(error).status).toBe(row.httpStatus);
  });
});

test('an error that is no SkepError shows none of its text', () => {
  const leak = new TypeError('password=hunter2');
  expect(toTerminal(leak, plain).text).toBe(
    `Error: ${CODES['internal/bug'].title}; ${CODES['internal/bug'].hint}\n`,
  );
  expect(toHttp(leak)).toEqual({ status: 500, body: '{"error":"internal server error"}' });
});

test.each<[Code, number, string]>([
  ['store/failed', 500, 'internal server error'],
  ['store/unavailable', 503, 'the store does not answer'],
  ['store/refused-login', 503, 'the database refused the login'],
  ['store/no-token', 503, 'no token to sign in to the database with'],
  ['store/locked', 503, 'the store is in use'],
  ['fetch/unreachable', 502, 'server not reachable'],
])('HTTP callers are not told where and why %s happened', (code, status, title) => {
  const error = new SkepError(code, { message: 'the database "10.0.0.5:5432/reg" failed: 0x00' });
  expect(toHttp(error)).toEqual({ status, body: JSON.stringify({ error: title }) });
  expect(tellsAll(error)).toBe(false);
});

test('HTTP callers are told what they did wrong, and where the title says everything there is nothing to log', () => {
  const mine = new SkepError('registry/bad-request', { message: 'invalid cursor' });
  expect(toHttp(mine)).toEqual({ status: 400, body: '{"error":"invalid cursor"}' });
  expect([tellsAll(mine), tellsAll(new SkepError('auth/unavailable'))]).toEqual([true, true]);
  expect([tellsAll(new TypeError('x')), tellsAll(new SkepError('internal/bug'))]).toEqual([false, false]);
});

test('debug adds code, detail and the stacks of all causes', () => {
  const error = new SkepError('config/invalid', {
    message: 'bad key "x"',
    detail: { key: 'x', size: 1n, token: 'hunter2' },
    cause: new TypeError('underneath https://ann:hunter2@host/'),
  });
  const { text } = toTerminal(error, { color: false, debug: true });
  expect(text).toContain('code: config/invalid');
  expect(text).toContain("key: 'x', size: 1n");
  expect(text).not.toContain('hunter2');
  expect(text).toContain('TypeError: underneath');
});

test('colour appears only when asked for', () => {
  const error = new SkepError('config/invalid');
  expect(toTerminal(error, { color: true, debug: false }).text).toContain('\u001B[31mError:\u001B[39m');
  expect(toTerminal(error, plain).text).not.toContain('\u001B');
});

test('control characters and line breaks of a quoted value do not reach the terminal', () => {
  const error = new SkepError('config/invalid', { message: 'bad "a\nb\u001B[2Jc"' });
  const { text } = toTerminal(error, plain);
  expect(text.startsWith('Error: bad "a b\u{FFFD}[2Jc"; ')).toBe(true);
  const hidden = toTerminal(new SkepError('usage/conflict', { message: 'a\u202Eb', hint: '\u2066c' }), plain);
  expect(hidden.text).toBe('Error: a\u{FFFD}b; \u{FFFD}c\n');
  expect(text.indexOf('\n')).toBe(text.length - 1);
});

test('hasCode tells codes apart', () => {
  expect(hasCode(new SkepError('config/invalid'), 'config/invalid')).toBe(true);
  expect(hasCode(new SkepError('config/invalid'), 'usage/conflict')).toBe(false);
  expect(hasCode(new Error('x'), 'config/invalid')).toBe(false);
});

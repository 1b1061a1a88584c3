import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureScriptImage } from './images.ts';
import { component, title } from './require.ts';
import { ask, openUser, type TestUser } from './skep.ts';

const engine = await component('engine');

/** Answers `initialize` and nothing else. */
const SILENT = `
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method } = JSON.parse(line);
  if (method !== 'initialize') return;
  const result = { protocolVersion: '2025-06-18', capabilities: { tools: {} }, serverInfo: { name: 's', version: '1' } };
  process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
});
`;

describe.skipIf(!engine.available)(title('SKEP_PROXY_REQUEST_TIMEOUT', engine), () => {
  let user: TestUser;
  let image: string;
  beforeAll(async () => {
    image = await ensureScriptImage('skep-test/silent:1', SILENT);
    user = openUser({ SKEP_RUNTIME: 'docker' });
  }, 120_000);
  afterAll(() => user.end());

  const secondsOfACall = async (url: string): Promise<number> => {
    const before = performance.now();
    const answer = await ask(url, 'tools/call', { name: 'x' });
    expect(answer.error?.message).toBe('Timeout');
    return (performance.now() - before) / 1_000;
  };

  test('is how long a call may take, for a run and for a start, whatever the supervisor was started with', async () => {
    const name = `silent-${process.pid}`;
    const env = (value: string) => ({ env: { SKEP_PROXY_REQUEST_TIMEOUT: value } });
    const run = await user.skep(['run', image, '--name', name, '--no-check'], env('2s'));
    expect(run).toMatchObject({ code: 0 });
    const url = run.stdout.trim();
    expect(await secondsOfACall(url)).toBeLessThan(20);
    expect(await user.skep(['stop', name])).toMatchObject({ code: 0 });
    expect(await user.skep(['start', name], env('500ms'))).toMatchObject({ code: 0 });
    expect(await secondsOfACall(url)).toBeLessThan(20);
  }, 120_000);

  test('is named by --explain, which starts nothing', async () => {
    const env = { SKEP_PROXY_REQUEST_TIMEOUT: '2s' };
    const { code, stdout } = await user.skep(['run', '--explain', '--name', 'told', image], { env });
    expect(code).toBe(0);
    expect(stdout).toMatch(/^request_timeout +2s +SKEP_PROXY_REQUEST_TIMEOUT +1m0s \(default\)$/m);
    expect(stdout).toMatch(/^name +told +--name$/m);
    expect((await user.skep(['list', '--all', '--format', 'json'])).stdout).not.toContain('"told"');
  });

  test.each(['5', '0s', '-1s', 'never'])(
    'of %s is told by its name, and the default holds',
    async (value) => {
      const env = { SKEP_PROXY_REQUEST_TIMEOUT: value };
      const { code, stdout, stderr } = await user.skep(['run', '--explain', image], { env });
      expect(code).toBe(0);
      expect(stderr).toContain(
        `Warning: invalid value "${value}" for the environment variable SKEP_PROXY_REQUEST_TIMEOUT`,
      );
      expect(stdout).not.toMatch(/^request_timeout/m);
    },
  );
});

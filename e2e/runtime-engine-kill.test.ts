import { execFileSync } from 'node:child_process';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { ask, ended, openUser, printed, type SkepResult, type TestUser } from './skep.ts';

const ours = await component('private-engine');

describe.skipIf(!ours.available)(title('a container engine that is killed', ours), () => {
  let engine: PrivateEngine;
  let image: string;
  let user: TestUser;

  beforeAll(async () => {
    engine = privateEngine();
    await engine.start();
    vi.stubEnv('DOCKER_HOST', `unix://${engine.socket}`);
    image = await ensureTinyImage(TINY_SERVER);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await engine.end();
  });
  beforeEach(() => {
    user = openUser();
  });
  afterEach(async () => {
    await user.end();
    expect(containers()).toEqual([]);
  });

  const containers = (): string[] =>
    execFileSync('docker', ['ps', '-a', '--format', '{{.Names}}'], { encoding: 'utf8' })
      .split('\n')
      .filter(Boolean);
  const statusOf = async (name: string): Promise<unknown> => {
    const { stdout } = await user.skep(['list', '--all', '--format', 'json']);
    return (JSON.parse(stdout) as { name: string; status: string }[]).find((one) => one.name === name)
      ?.status;
  };
  const becomes = (name: string, status: string): Promise<void> =>
    vi.waitFor(async () => expect(await statusOf(name)).toBe(status), { timeout: 60_000, interval: 300 });

  /** One line for the problem, which names the socket. */
  function expectRefusal({ code, stdout, stderr }: SkepResult): void {
    expect({ code, stdout }, stderr).toEqual({ code: 1, stdout: '' });
    expect(stderr.split('\n').filter((line) => line.startsWith('Error: '))).toEqual([
      expect.stringContaining(engine.socket),
    ]);
  }

  test('while a workload runs: it is told, new runs are refused, and it goes on when the engine is back', async () => {
    const started = await user.skep(['run', image, '--name', 'first']);
    expect(started.code, started.stderr).toBe(0);
    const url = started.stdout.trim();
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    await engine.kill();
    await becomes('first', 'unhealthy');
    expectRefusal(await user.skep(['run', image, '--name', 'second']));
    expect(await statusOf('second')).toBeUndefined();
    await engine.start();
    await becomes('first', 'running');
    expect(await ask(url, 'tools/list')).toHaveProperty('result.tools');
    expect(containers()).toEqual(['first']);
  });

  test('while a server starts: the run fails with one line, and its name is free when the engine is back', async () => {
    const child = user.start(['run', image, '--name', 'first', '--', 'mute']);
    const finished = ended(child);
    await printed(child, 'Waiting for');
    await engine.kill();
    const refused = await finished;
    expectRefusal(refused);
    expect(refused.stderr).toContain('do it with skep rm first');
    expect(await statusOf('first')).toBe('error');
    await engine.start();
    const again = await user.skep(['run', image, '--name', 'first']);
    expect(again.code, again.stderr).toBe(0);
    expect(await ask(again.stdout.trim(), 'ping')).toMatchObject({ result: {} });
    expect(containers()).toEqual(['first']);
  });
});

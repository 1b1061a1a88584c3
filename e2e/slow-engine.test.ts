import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { engineRelay, type EngineRelay } from './fixtures/engine-relay.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

const engine = await component('engine');

describe.skipIf(!engine.available)(title('an engine that is slower than anybody waits', engine), () => {
  let user: TestUser;
  let relay: EngineRelay;
  let directory: string;
  /** It says nothing to who asks who it is. */
  let isSilent: boolean;
  /** Names on a shared engine must not meet those of another test run. */
  let prefix: string;

  beforeEach(async () => {
    isSilent = false;
    prefix = `slow${randomBytes(3).toString('hex')}`;
    directory = mkdtempSync(path.join(tmpdir(), 'skep-slow-'));
    relay = await engineRelay(
      path.join(directory, 'engine.sock'),
      // By itself, or by a network that is there (decision 0469).
      (line) => !isSilent || !/\/info\b|\/networks\/[\da-f]{64}\b/.test(line),
    );
    user = openUser({ SKEP_RUNTIME: 'docker', DOCKER_HOST: `unix://${relay.path}` });
    const image = await ensureTinyImage(TINY_SERVER);
    for (const name of ['a', 'b', 'c']) {
      const volumes = name === 'c' ? [] : ['-v', `volume://${prefix}-${name}:/data`];
      const made = await user.skep(['run', image, '--name', `${prefix}-${name}`, ...volumes]);
      expect(made.code, made.stderr).toBe(0);
    }
    expect(onEngine()).toHaveLength(5);
  });
  afterEach(async () => {
    isSilent = false;
    await user.end();
    await relay.cut();
    rmSync(directory, { recursive: true, force: true });
    expect(onEngine()).toEqual([]);
  });

  /** The containers and volumes of this test. */
  function onEngine(): string[] {
    const list = (...words: string[]): string[] =>
      execFileSync('docker', ['-H', `unix://${engineSocket()}`, ...words], { encoding: 'utf8' })
        .split('\n')
        .filter((one) => one.includes(prefix));
    return [...list('ps', '-a', '--format', '{{.Names}}'), ...list('volume', 'ls', '-q')];
  }

  const saidNothing = (): string =>
    `Error: the container engine at unix://${relay.path} does not answer: it said nothing in time; check that it is running and that you may use its socket`;

  test('is named in one line, with the next step, by every command that waited for it', async () => {
    isSilent = true;
    const lines = [
      ['run', await ensureTinyImage(TINY_SERVER), '--name', `${prefix}-d`],
      ['stop', `${prefix}-a`],
      ['rm', `${prefix}-b`],
    ];
    const told = await Promise.all(lines.map((line) => user.skep(line)));
    const later = (name: string, what: string): string =>
      `; "${prefix}-${name}" is ${what} as soon as that works`;
    expect(told.map(({ code }) => code)).toEqual([1, 1, 1]);
    expect(told.map(({ stderr }) => stderr.split('\n').filter((line) => line.startsWith('Error')))).toEqual([
      [saidNothing()],
      [saidNothing() + later('a', 'stopped')],
      [saidNothing() + later('b', 'removed')],
    ]);
    // It waits for nobody who starts a server, so it has its turn alone.
    expect(await user.skep(['prune'])).toMatchObject({ code: 1, stderr: `${saidNothing()}\n` });
    // What was said is done without being asked again; what failed has left nothing.
    isSilent = false;
    const settles = { timeout: 60_000, interval: 250 };
    await vi.waitFor(async () => {
      const { stdout } = await user.skep(['list', '--all', '--format', 'json']);
      const seen = (JSON.parse(stdout) as { name: string; status: string }[]).map(({ name, status }) => [
        name,
        status,
      ]);
      expect(seen).toEqual([
        [`${prefix}-a`, 'stopped'],
        [`${prefix}-c`, 'running'],
      ]);
    }, settles);
  });

  test('rm --all --data removes everything once it answers again, with the data', async () => {
    isSilent = true;
    const { code, stderr } = await user.skep(['rm', '--all', '--data', '--yes']);
    expect(code).toBe(1);
    expect(stderr).toMatch(
      /^Error: 3 of 3 failed; the first: the container engine at [^\n]* does not answer: [^\n]*\n$/,
    );
    expect(stderr).toContain(`"${prefix}-a" is removed, with its data, as soon as that works`);
    isSilent = false;
    await vi.waitFor(() => expect(onEngine()).toEqual([]), { timeout: 60_000, interval: 250 });
    await user.skep(['rm', '--all', '--data']);
    expect(user.leftFiles()).toEqual([]);
  });
});

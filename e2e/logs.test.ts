import { execFileSync } from 'node:child_process';
import { appendFileSync, readFileSync } from 'node:fs';
import { randomBytes } from 'node:crypto';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { ensureTinyImage } from './images.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, ended, openUser, printed, type TestUser } from './skep.ts';

const engine = await component('engine');

describe.skipIf(!engine.available)(title('logs of a stdio server', engine), () => {
  const name = `t${randomBytes(3).toString('hex')}-logs`;
  let user: TestUser;
  beforeAll(async () => {
    user = openUser({ SKEP_RUNTIME: 'docker' });
    const { code, stdout, stderr } = await user.skep([
      'run',
      await ensureTinyImage(TINY_SERVER),
      '--name',
      name,
    ]);
    expect(code, stderr).toBe(0);
    await ask(stdout.trim(), 'tools/list');
  });
  afterAll(() => user.end());
  const printedBy = async (...args: string[]): Promise<string> => {
    const { code, stdout, stderr } = await user.skep(['logs', ...args, name]);
    expect({ code, stderr }).toEqual({ code: 0, stderr: '' });
    return stdout;
  };

  test('are what it wrote for people, not the protocol', async () => {
    expect(await printedBy()).toBe('tiny server is up\n');
  });

  test('end with the last lines of those, however much protocol followed', async () => {
    expect(await printedBy('--tail', '1')).toBe('tiny server is up\n');
    expect(await printedBy('--tail', '0')).toBe('');
  });

  test('have the time of the engine before each line, and leave out what is older than asked for', async () => {
    const line = await printedBy('--timestamps');
    expect(line).toMatch(/^\S+ tiny server is up\n$/);
    const time = Date.parse(line.split(' ', 1)[0] ?? '');
    expect(Math.abs(Date.now() - time)).toBeLessThan(600_000);
    expect(await printedBy('--since', '1h')).toBe('tiny server is up\n');
    expect(await printedBy('--since', new Date(time + 1000).toISOString())).toBe('');
  });

  test('--follow begins with the last lines too', async () => {
    const following = user.start(['logs', '--follow', '--tail', '1', name]);
    const over = ended(following);
    await printed(following, 'tiny server is up\n');
    following.kill('SIGINT');
    expect((await over).stdout).toBe('tiny server is up\n');
  });

  test('of its proxy are cut to the last lines, and followed from there', async () => {
    const file = path.join(user.dir, 'data/skep/logs', `${name}.log`);
    appendFileSync(file, 'one\ntwo\nthree\n');
    expect(await printedBy('--proxy', '--tail', '2')).toBe('two\nthree\n');
    expect(await printedBy('--proxy')).toBe(readFileSync(file, 'utf8'));
    const following = user.start(['logs', '--proxy', '--follow', '--tail', '1', name]);
    const over = ended(following);
    await printed(following, 'three\n');
    appendFileSync(file, 'four\n');
    await printed(following, 'four\n');
    following.kill('SIGINT');
    expect((await over).stdout).toBe('three\nfour\n');
  });

  test('are bounded by the engine', () => {
    const format = '{{json .HostConfig.LogConfig}}';
    const text = execFileSync('docker', [
      '-H',
      `unix://${engineSocket()}`,
      'inspect',
      name,
      '--format',
      format,
    ]);
    expect(JSON.parse(text.toString())).toEqual({
      Type: 'json-file',
      Config: { 'max-size': '10m', 'max-file': '2' },
    });
  });
});

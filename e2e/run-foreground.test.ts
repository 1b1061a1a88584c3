import { execFileSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { ask, ended, openUser, printed, type TestUser } from './skep.ts';

const engine = await component('engine');

let user: TestUser;
let name: string;

/** Id and start time of the container: changes when something was restarted. */
function container(): string {
  const format = '{{.Id}} {{.State.StartedAt}} {{.State.Running}}';
  const args = ['-H', `unix://${engineSocket()}`, 'inspect', name, '--format', format];
  return execFileSync('docker', args, { encoding: 'utf8', stdio: 'pipe' });
}

describe.skipIf(!engine.available)(title('a run in the foreground that is killed', engine), () => {
  beforeEach(() => {
    name = `fore-${randomBytes(3).toString('hex')}`;
    user = openUser({ SKEP_RUNTIME: 'docker' });
  });
  afterEach(() => user.end());

  test('leaves its server running; the next command takes it up on its URL, and rm removes it', async () => {
    const image = await ensureTinyImage(TINY_SERVER);
    const child = user.start(['run', image, '--name', name, '--foreground']);
    const finished = ended(child);
    const url = /http:\S+\/mcp/.exec(await printed(child, 'Press Ctrl-C'))?.[0] ?? '';
    const before = container();
    child.kill('SIGKILL');
    await finished;
    await expect(ask(url, 'ping')).rejects.toThrow();
    expect(container()).toBe(before);

    const [listed] = JSON.parse((await user.skep(['list', '--format', 'json'])).stdout) as unknown[];
    expect(listed).toMatchObject({ name, url, status: 'running' });
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    expect(container()).toBe(before);

    const again = await user.skep(['run', image, '--name', name, '--foreground']);
    expect(again).toMatchObject({ code: 1, stdout: '', stderr: expect.stringContaining(`skep rm ${name}`) });

    expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
    expect(container).toThrow();
    expect(user.leftFiles().filter((file) => /(?:statuses|runconfigs)\/.+/.test(file))).toEqual([]);
  });

  test('is run again under its name by the same command, with a server of its own, and by no other', async () => {
    const image = await ensureTinyImage(TINY_SERVER);
    const words = ['--name', name, '--foreground'];
    const killed = user.start(['run', image, ...words]);
    const finished = ended(killed);
    await printed(killed, 'Press Ctrl-C');
    const before = container();
    killed.kill('SIGKILL');
    await finished;

    const other = await user.skep(['run', 'example.invalid/other:1', ...words, '--transport', 'stdio']);
    expect(other).toMatchObject({ code: 1, stderr: expect.stringContaining(`skep rm ${name}`) });
    expect(container()).toBe(before);

    const again = user.start(['run', image, ...words]);
    const over = ended(again);
    const url = /http:\S+\/mcp/.exec(await printed(again, 'Press Ctrl-C'))?.[0] ?? '';
    expect(container()).not.toBe(before);
    expect(await ask(url, 'ping')).toMatchObject({ result: {} });
    expect(user.supervisors()).toEqual([]);
    again.kill('SIGTERM');
    expect(await over).toMatchObject({ code: 0 });
    expect(container).toThrow();
  });
});

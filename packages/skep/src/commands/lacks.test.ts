import { describe, expect, test } from 'vitest';
import { commandUnderTest, controlsIn } from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { LogChunk } from '../runtime/runtime.ts';

// By the supervisor, by the command itself, and in the foreground.
const WAYS = [
  ['up', ''],
  ['asked', ''],
  ['asked', ' --foreground'],
] as const;

describe.each(WAYS)('a server that does not come up (%s%s)', (supervisor, flag) => {
  test('for want of a path is refused with the flag that gives it', async () => {
    const skep = await commandUnderTest({ supervisor, files: { 'notes/a': '' } });
    const path = `${skep.cwd}/notes`;
    skep.runtime.crash = {
      exitCode: 1,
      says: `Error: ENOENT: no such file or directory, scandir '${path}'\n`,
    };
    const { status, err } = await skep.run(`run fake:1 --name a1${flag}`);
    expect(status).toBe(1);
    expect(err).toContain(
      `; if it needs ${path}, run it with --volume ${path}:${path}:ro; where it is kept, skep permit a1 ${path} gives it\n`,
    );
    expect((await skep.left()).saved).toEqual([]);
  });

  test('is offered nothing that it should not have', async () => {
    const skep = await commandUnderTest({ supervisor, files: { '../.ssh/id': '' } });
    const says = ['/', skep.home, `${skep.home}/.ssh`, '/etc/shadow', '/var/run/docker.sock', 'x\u001B[31m']
      .map((path) => `Error: EACCES: permission denied, open '${path}'\n`)
      .join('');
    skep.runtime.crash = { exitCode: 1, says };
    const { err } = await skep.run(`run fake:1 --name a1${flag}`);
    expect(err).toContain('; read its last lines above; check its arguments and environment variables\n');
    expect(controlsIn(err)).toEqual([]);
  });
});

test('a host that the gateway refused before a server gave up is named', async () => {
  const skep = await commandUnderTest();
  skep.runtime.crash = { exitCode: 1, says: 'fetch failed\n' };
  skep.runtime.decisions.set('a1', [
    {
      time: '2026-01-01T00:00:00Z',
      decision: 'denied',
      host: 'api.example.com',
      port: 443,
      via: 'proxy',
      count: 2,
    },
  ]);
  const { err } = await skep.run('run fake:1 --name a1 --isolate-network --permission-profile none');
  expect(err).toContain(
    '; if it needs api.example.com:443, list it in its permission profile; where it is kept, skep permit a1 api.example.com:443 gives it\n',
  );
});

test('start and status name the line for a server that is kept, which gives it', async () => {
  const skep = await commandUnderTest({ files: { 'notes/a': '' } });
  await skep.output('run fake:1 --name a1 --permission-profile none');
  await skep.output('stop a1');
  const path = `${skep.cwd}/notes`;
  const says = `Error: ENOENT: no such file or directory, open '${path}'\nError: getaddrinfo ENOTFOUND api.example.com\n`;
  skep.runtime.crash = { exitCode: 1, says };
  const { err } = await skep.run('start a1');
  expect(err).toContain(`skep permit a1 ${path} gives it`);
  expect(err).toContain('skep permit a1 api.example.com:443 gives it');
  const shown = await skep.output('status a1');
  expect(shown).toMatch(
    /^May lack: +\S+work\/notes – skep permit a1 \S+work\/notes\n +api\.example\.com – skep permit a1 api\.example\.com:443$/m,
  );
  expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({
    may_lack: [
      { what: path, permit: `skep permit a1 ${path}` },
      { what: 'api.example.com', permit: 'skep permit a1 api.example.com:443' },
    ],
  });
  skep.runtime.crash = undefined;
  await skep.output(`permit a1 ${path}`);
  await skep.output('start a1');
  expect(skep.runtime.specOf('a1')?.mounts).toEqual([{ source: path, target: path, readOnly: true }]);
  expect(await skep.output('status a1')).not.toContain(`permit a1 ${path}`);
});

/** Its servers have written one line, to one stream. */
class WritingRuntime extends MemoryRuntime {
  said: LogChunk | undefined;
  override async *logs(): AsyncGenerator<LogChunk> {
    if (this.said) yield this.said;
  }
}

test.each([
  ['stderr', true],
  ['stdout', false],
] as const)('what a stdio server writes to its %s counts: %s', async (stream, counts) => {
  const runtime = new WritingRuntime();
  const skep = await commandUnderTest({ runtime, files: { 'notes/a': '' } });
  await skep.output('run fake:1 --name a1');
  const bytes = Buffer.from(`ENOENT: no such file or directory, open '${skep.cwd}/notes'\n`);
  runtime.said = { stream, bytes };
  expect((await skep.output('status a1')).includes('May lack')).toBe(counts);
});

import { appendFile, mkdir, readdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, ctrlC, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { MemoryProcess } from '../runtime/doubles/program.ts';

interface Talker {
  readonly skep: CommandUnderTest;
  /** The running server. */
  readonly server: () => MemoryProcess;
}

/** A server that writes three lines when it starts, and then what a test has it write. */
async function talker(flags = ''): Promise<Talker> {
  let server: MemoryProcess | undefined;
  const runtime = new MemoryRuntime({
    talker: (process) => {
      server = process;
      process.warn('one\ntwo\nthree\n');
    },
  });
  const skep = await commandUnderTest({ runtime });
  await skep.output(`run npx://talker --name a1 ${flags}`);
  return {
    skep,
    server: () => {
      if (!server) throw new Error('the server was not started');
      return server;
    },
  };
}

describe('skep logs', () => {
  test('prints what the server wrote, on stdout and as it is', async () => {
    const { skep } = await talker();
    expect(await skep.run('logs a1')).toEqual({ status: 0, out: 'one\ntwo\nthree\n', err: '' });
  });

  test.each([
    [0, ''],
    [1, 'three\n'],
    [2, 'two\nthree\n'],
    [3, 'one\ntwo\nthree\n'],
    [99, 'one\ntwo\nthree\n'],
  ])('prints the last %d lines', async (count, text) => {
    const { skep } = await talker();
    expect(await skep.output(`logs a1 --tail ${count}`)).toBe(text);
  });

  test('counts a last line without its end, and lines over HTTP as the engine does', async () => {
    const { skep, server } = await talker();
    server().warn('\nand on');
    expect(await skep.output('logs a1 --tail 2')).toBe('\nand on');
    const http = await talker('--transport streamable-http --target-port 80');
    expect(await http.skep.output('logs a1 --tail 2')).toBe('two\nthree\n');
  });

  test('follows until Ctrl-C, which is no failure', async () => {
    const { skep, server } = await talker();
    const pressed = ctrlC();
    let seen = '';
    const following = skep.run('logs --follow a1', {
      signal: pressed.signal,
      onOut(text) {
        seen += text;
        if (seen.endsWith('three\n')) server().warn('four\n');
        if (seen.endsWith('four\n')) pressed.press();
      },
    });
    expect(await following).toEqual({ status: 0, out: 'one\ntwo\nthree\nfour\n', err: '' });
  });

  test('follows to the end of a server that ends', async () => {
    const { skep } = await talker('--transport streamable-http --target-port 80');
    await skep.output('stop a1');
    expect(await skep.output('logs -f a1')).toBe('one\ntwo\nthree\n');
  });

  test.each([
    ['\u001B]0;owned\u0007', '�]0;owned�'],
    ['\u001B[2J', '�[2J'],
    ['\u202Egnp.exe', '�gnp.exe'],
  ])('shows %j on a terminal as %j, and gives a file the bytes', async (written, shown) => {
    const { skep, server } = await talker();
    server().warn(`${written}\n`);
    expect(await skep.output('logs --tail 1 a1', { terminal: { liveOut: true } })).toBe(`${shown}\n`);
    expect(await skep.output('logs --tail 1 a1')).toBe(`${written}\n`);
  });

  test('puts the time before each line, of last lines and followed ones too', async () => {
    const { skep, server } = await talker();
    const lines = /^(\S+) (?:one|two|three)$/;
    const times = (await skep.output('logs a1 --timestamps'))
      .trimEnd()
      .split('\n')
      .map((line) => Date.parse(lines.exec(line)?.[1] ?? ''));
    expect(times[0]).not.toBeNaN();
    expect(times).toEqual([times[0], times[0], times[0]]);
    expect(await skep.output('logs a1 -t --tail 1')).toMatch(/^\S+Z three\n$/);
    const pressed = ctrlC();
    const { out } = await skep.run('logs -f -t --tail 1 a1', {
      signal: pressed.signal,
      onOut(text) {
        if (text.endsWith('three\n')) setImmediate(() => server().warn('four\n'));
        if (text.endsWith('four\n')) pressed.press();
      },
    });
    expect(out).toMatch(/^\S+Z three\n\S+Z four\n$/);
  });

  test('leaves out what was written before a time, or longer ago', async () => {
    const { skep, server } = await talker();
    server().warn('four\n');
    const [last = ''] = (await skep.output('logs a1 -t --tail 1')).split(' ');
    expect(await skep.output(`logs a1 --since ${last}`)).toBe('four\n');
    expect(await skep.output(`logs a1 --since ${last.replace('Z', '+00:00')} --tail 5`)).toBe('four\n');
    // The clock of the runtime in memory stands in 1970.
    expect(await skep.output('logs a1 --since 10m')).toBe('');
    expect(await skep.output('logs a1 --since 2000000h')).toBe('one\ntwo\nthree\nfour\n');
  });

  test.each(['--timestamps', '--since 10m'])('refuses %s where the runtime keeps no times', async (flag) => {
    const { skep } = await talker();
    skep.runtime.timesLogs = false;
    const [name = ''] = flag.split(' ');
    expect(await skep.refusal(`logs a1 ${flag}`)).toBe(
      `Error: the docker keeps no time of what "a1" wrote; leave out ${name}; the proxy's log has times: skep logs --proxy a1\n`,
    );
  });

  test('is kept while a server is stopped', async () => {
    const { skep } = await talker();
    await skep.output('stop a1');
    expect(await skep.output('logs a1')).toBe('one\ntwo\nthree\n');
  });

  test('says why where the engine has the server no more, and where to read on', async () => {
    const { skep } = await talker();
    await skep.output('stop a1');
    await skep.runtime.remove('a1');
    const { status, err } = await skep.run('logs a1');
    expect(status).toBe(1);
    expect(err).toBe(
      'Error: the server of "a1" was not found on the docker runtime; see why with skep logs --proxy a1\n',
    );
  });

  test.each([
    ['logs missing', 'Error: workload "missing" not found; see the names with skep list --all\n'],
    ['logs', 'Error: missing argument NAME; run the command with --help to see its arguments\n'],
    ['logs a1 b1', 'Error: unexpected argument "b1"; run the command with --help to see its arguments\n'],
    [
      'logs a1 --tail -1',
      'Error: invalid value "-1" for --tail: it must be at least 0; run the command with --help to see what is accepted\n',
    ],
    [
      'logs a1 --since yesterday',
      'Error: invalid value "yesterday" for --since; give a duration, such as 10m or 1h30m, or a time, such as 2026-01-02T15:04:05Z\n',
    ],
    [
      'logs a1 --since -5m',
      'Error: invalid value "-5m" for --since; give a duration, such as 10m or 1h30m, or a time, such as 2026-01-02T15:04:05Z\n',
    ],
    ['logs a1 --proxy -t', 'Error: --timestamps cannot be used together with --proxy; keep one of them\n'],
    [
      'logs a1 --tail many',
      'Error: invalid value "many" for --tail: it must be a whole number; run the command with --help to see what is accepted\n',
    ],
  ])('%s is refused', async (line, message) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.refusal(line)).toBe(message);
  });
});

describe('skep logs --proxy', () => {
  async function withProxyLog(text: string): Promise<{ skep: CommandUnderTest; path: string }> {
    const { skep } = await talker();
    const path = `${skep.places.logsDir}/a1.log`;
    await mkdir(skep.places.logsDir, { recursive: true });
    await writeFile(path, text);
    return { skep, path };
  }

  test('says where there is none yet, on stderr', async () => {
    const { skep } = await talker();
    expect(await skep.run('logs --proxy a1')).toEqual({
      status: 0,
      out: '',
      err: 'workload "a1" has no proxy log yet\n',
    });
  });

  test('prints the file, or its last lines', async () => {
    const { skep } = await withProxyLog('{"level":30}\n{"level":40}\n');
    expect(await skep.output('logs -p a1')).toBe('{"level":30}\n{"level":40}\n');
    expect(await skep.output('logs -p a1 --tail 1')).toBe('{"level":40}\n');
  });

  test('asks no engine, which may be the reason why somebody reads it', async () => {
    const { skep } = await withProxyLog('{"level":50}\n');
    skep.runtime.unreachable = true;
    expect(await skep.output('logs -p a1')).toBe('{"level":50}\n');
    skep.runtime.unreachable = false;
  });

  test('goes on with what is written while somebody follows', async () => {
    const { skep, path } = await withProxyLog('first\n');
    const pressed = ctrlC();
    let seen = '';
    const following = skep.run('logs -p -f a1', {
      signal: pressed.signal,
      onOut(text) {
        seen += text;
        if (seen === 'first\n') void appendFile(path, 'second\n');
        if (seen.endsWith('second\n')) pressed.press();
      },
    });
    expect(await following).toEqual({ status: 0, out: 'first\nsecond\n', err: '' });
  });
});

describe('skep logs prune', () => {
  test('removes the logs of servers that are no more, and no others', async () => {
    const { skep } = await talker();
    const [gone, earlier, kept] = ['gone.log', 'gone.log.1', 'a1.log'].map((file) =>
      join(skep.places.logsDir, file),
    );
    for (const file of [gone, earlier, kept, skep.places.supervisorLog]) await writeFile(file ?? '', 'x\n');
    expect(await skep.output('logs prune')).toBe(`Removed: ${gone}\nRemoved: ${earlier}\n`);
    expect((await readdir(skep.places.logsDir)).toSorted()).toEqual(['_supervisor.log', 'a1.log']);
    expect(await skep.output('logs prune')).toBe('No orphaned log files found to prune\n');
  });

  test('takes no log of the supervisor for that of a server, whatever that is called', async () => {
    const { skep } = await talker();
    await skep.output('run npx://talker --name supervisor');
    await writeFile(skep.places.supervisorLog, 'its own\n');
    expect((await skep.run('logs supervisor --proxy')).out).not.toContain('its own');
    await skep.output('rm supervisor');
    expect(await readFile(skep.places.supervisorLog, 'utf8')).toBe('its own\n');
  });

  test('says why there is nothing to do', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.output('logs prune')).toBe('No logs directory found, nothing to prune\n');
    await mkdir(skep.places.logsDir, { recursive: true });
    await writeFile(join(skep.places.logsDir, 'notes.txt'), '');
    expect(await skep.output('logs prune')).toBe('No log files found\n');
    await writeFile(skep.places.supervisorLog, '');
    expect(await skep.output('logs prune')).toBe('No orphaned log files found to prune\n');
  });

  test('shows the log of a server that is called that', async () => {
    const { skep } = await talker();
    await skep.output('run npx://talker --name prune');
    expect(await skep.output('logs prune')).toBe('one\ntwo\nthree\n');
  });
});

import { execFileSync } from 'node:child_process';
import { chmodSync, mkdtempSync, readFileSync, rmSync, statSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { earlierLog, followFile } from './log-file.ts';
import { isRead, openLogPipe, untilLogged } from './log-pipe.ts';
import { workloadPlaces, type WorkloadPlaces } from './places.ts';

describe.skipIf(process.platform !== 'linux')('the log of a sandboxed server', () => {
  let places: WorkloadPlaces;
  beforeEach(() => {
    places = workloadPlaces(mkdtempSync(path.join(tmpdir(), 'skep-log-pipe-')));
    execFileSync('mkfifo', [places.life, places.stderr]);
  });
  afterEach(async () => {
    await untilLogged(places, undefined);
    rmSync(places.directory, { recursive: true });
  });
  /** Empty also between two generations, where no file has the name. */
  function logged(file = places.log): string {
    try {
      return readFileSync(file, 'utf8');
    } catch {
      return '';
    }
  }

  test('holds what was written once its keeper waits for more, and all of it after the end', async () => {
    const pipe = openLogPipe(places, []);
    writeSync(pipe.descriptor, 'one\n');
    await untilLogged(places, pipe.keeper);
    expect(logged()).toBe('one\n');
    writeSync(pipe.descriptor, 'two\n');
    pipe[Symbol.dispose]();
    await untilLogged(places, undefined);
    expect(isRead(places)).toBe(false);
    expect(logged()).toBe('one\ntwo\n');
    expect(statSync(places.log).mode & 0o777).toBe(0o600);
  });

  test('goes on at the next start, and after the server has shut it', async () => {
    for (const line of ['first\n', 'second\n']) {
      using pipe = openLogPipe(places, []);
      writeSync(pipe.descriptor, line);
      chmodSync(places.stderr, 0);
      pipe[Symbol.dispose]();
      await untilLogged(places, undefined);
    }
    expect(logged()).toBe('first\nsecond\n');
  });

  test('is never larger than its limit, with one generation before it, however fast it is written', async () => {
    const limit = 102_400;
    {
      using pipe = openLogPipe(places, [], limit);
      const line = `${'x'.repeat(999)}\n`;
      for (let lines = 0; lines < 3_000; lines += 1) {
        writeSync(pipe.descriptor, line);
        if (lines % 100 === 0) expect(logged().length).toBeLessThanOrEqual(limit);
      }
      await untilLogged(places, pipe.keeper);
      writeSync(pipe.descriptor, 'the last line\n');
    }
    await untilLogged(places, undefined);
    expect(logged(earlierLog(places.log))).toHaveLength(limit);
    expect(logged().length).toBeLessThanOrEqual(limit);
    expect(logged()).toMatch(/the last line\n$/);
  });

  test('is followed from one generation to the next', async () => {
    const pipe = openLogPipe(places, [], 1024);
    const over = () => Promise.resolve(!isRead(places));
    const { signal } = new AbortController();
    writeSync(pipe.descriptor, 'first\n');
    await untilLogged(places, pipe.keeper);
    let seen = '';
    let at = 0;
    for await (const bytes of followFile(places.log, { follow: true, signal, over, pollMs: 10 })) {
      seen += bytes.toString();
      // No more than one generation between two looks: the one before the last is not kept.
      for (let lines = 0; lines < 8 && at < 64; lines += 1, at += 1) {
        writeSync(pipe.descriptor, `line ${at} ${'x'.repeat(50)}\n`);
        await untilLogged(places, pipe.keeper);
      }
      if (at === 64) pipe[Symbol.dispose]();
    }
    const lines = seen.split('\n').filter((line) => /^line \d+ x{50}$/.test(line));
    expect(new Set(lines).size).toBe(lines.length);
    // Of each generation the line at its end may be cut.
    expect(lines.length).toBeGreaterThan(55);
    expect(seen).toMatch(/^first\n/);
    expect(seen).toMatch(/line 63 x+\n$/);
  });
});

import { chmod, mkdtemp, mkdir, readdir, readFile, readlink, rename, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Writable } from 'node:stream';
import * as fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { anyText } from '../json/any-text.fixture.ts';
import { manualClock } from '../time/doubles/manual-clock.ts';
import { auditLine, limitedField, type AuditEvent } from './audit-event.ts';
import { openAuditLog, eventPredicate, streamSink } from './audit-log.ts';
import { openFileSink } from './file-sink.ts';

let dir: string;
beforeAll(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skep-audit-'));
});
afterAll(() => rm(dir, { recursive: true }));

const event: AuditEvent = {
  type: 'entry.publish',
  outcome: 'success',
  component: 'test',
  source: { type: 'network', value: '127.0.0.1:1', extra: { user_agent: 'x' } },
  subjects: { sub: 'ann' },
  target: { method: 'POST', path: '/v1/entries' },
  metadata: { extra: { duration_ms: 1 } },
};
const losses: { lines: number; cause: unknown }[] = [];
const onLost = (lines: number, cause: unknown) => losses.push({ lines, cause });

test('an event is one line with its id and time in the order that readers know', () => {
  const line = auditLine({ ...event, data: 'a\nb' }, { id: 'id-1', time: '2026-01-02T03:04:05.000Z' });
  expect(line.indexOf('\n')).toBe(line.length - 1);
  const parsed = JSON.parse(line);
  expect(Object.keys(parsed).join(' ')).toBe(
    'time level msg audit_id type logged_at outcome component source subjects target metadata data',
  );
  expect(parsed).toMatchObject({ level: 'AUDIT', msg: 'audit_event', audit_id: 'id-1', data: 'a\nb' });
});

test('a limited field is never longer than its limit and always well-formed', () => {
  fc.assert(
    fc.property(anyText(), fc.integer({ min: 1, max: 20 }), (text, max) => {
      const field = limitedField(text, max);
      expect(field.length).toBeLessThanOrEqual(max);
      expect(field.isWellFormed()).toBe(true);
      if (text.length <= max) expect(field).toBe(text.toWellFormed());
    }),
  );
  expect(limitedField('ab🐝', 3)).toBe('ab');
});

describe('which events are written', () => {
  test.each<[allowed: string[], excluded: string[], written: string[]]>([
    [[], [], ['a', 'b', 'c']],
    [['a', 'b'], [], ['a', 'b']],
    [['a', 'b'], ['b'], ['a']],
    [[], ['b'], ['a', 'c']],
  ])('allowed %j without %j', (eventTypes, excludeEventTypes, written) => {
    expect(['a', 'b', 'c'].filter(eventPredicate({ eventTypes, excludeEventTypes }))).toEqual(written);
  });

  test('an excluded event does not reach the sink', async () => {
    const lines: string[] = [];
    const log = openAuditLog({
      sink: streamSink({ stream: { write: (text) => lines.push(text) }, onLost }),
      filter: { eventTypes: [], excludeEventTypes: ['server.list'] },
      now: () => '2026-01-02T03:04:05.000Z',
      randomId: () => 'id',
    });
    log.record({ ...event, type: 'server.list' });
    log.record(event);
    await log.close();
    expect(lines).toHaveLength(1);
  });
});

test('a stream sink tells of lines that nobody reads any more', async () => {
  const gone = new Error('EPIPE');
  const lost: unknown[] = [];
  const broken = new Writable({ write: (_chunk, _encoding, done) => done(gone) }).on(
    'error',
    () => undefined,
  );
  const sink = streamSink({ stream: broken, onLost: (lines, cause) => lost.push([lines, cause]) });
  sink.write('one\n');
  await vi.waitFor(() => expect(broken.closed).toBe(true));
  sink.write('two\n');
  await sink.close();
  await vi.waitFor(() => expect(lost).toHaveLength(2));
  expect(lost[0]).toEqual([1, gone]);
});

describe('a file sink', () => {
  test('appends in order to a file that only its owner may read', async () => {
    const path = join(dir, 'order.log');
    for (const round of [0, 1]) {
      const sink = await openFileSink({ path, onLost });
      for (let i = 0; i < 500; i += 1) sink.write(`${round * 500 + i}\n`);
      await sink.close();
    }
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    const expected = Array.from({ length: 1000 }, (_, i) => `${i}\n`).join('');
    expect(await readFile(path, 'utf8')).toBe(expected);
    expect(losses).toEqual([]);
  });

  test('goes on in a new file after the old one was moved away', async () => {
    const path = join(dir, 'rotated.log');
    const sink = await openFileSink({ path, onLost });
    sink.write('before\n');
    await sink.reopen();
    await rename(path, `${path}.1`);
    sink.write('between\n');
    await sink.reopen();
    sink.write('after\n');
    await sink.close();
    expect(await readFile(`${path}.1`, 'utf8')).toBe('before\nbetween\n');
    expect(await readFile(path, 'utf8')).toBe('after\n');
  });

  test('goes on in a new file after the old one was moved away, by itself where it follows its name', async () => {
    const path = join(dir, 'followed.log');
    const clock = manualClock();
    const sink = await openFileSink({ path, onLost, follow: clock });
    sink.write('one\n');
    await vi.waitFor(async () => expect(await readFile(path, 'utf8')).toBe('one\n'));
    await rename(path, `${path}.1`);
    clock.pass(1_000);
    sink.write('two\n');
    await sink.close();
    expect(await readFile(`${path}.1`, 'utf8')).toBe('one\n');
    expect(await readFile(path, 'utf8')).toBe('two\n');
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  // /proc shows what a process has open; Linux only.
  test.skipIf(process.platform !== 'linux')('opened anew twice at once keeps one file open', async () => {
    const path = join(dir, 'twice.log');
    const held = async (): Promise<number> => {
      const names = await readdir('/proc/self/fd');
      const files = await Promise.all(names.map((name) => readlink(`/proc/self/fd/${name}`).catch(() => '')));
      return files.filter((file) => file === path).length;
    };
    const sink = await openFileSink({ path, onLost });
    await Promise.all([sink.reopen(), sink.reopen(), sink.reopen()]);
    sink.write('here\n');
    expect(await held()).toBe(1);
    await Promise.all([sink.reopen(), sink.close()]);
    expect(await held()).toBe(0);
    expect(await readFile(path, 'utf8')).toBe('here\n');
  });

  test('does not start without its directory', async () => {
    const path = join(dir, 'none', 'audit.log');
    await expect(openFileSink({ path, onLost })).rejects.toMatchObject({ code: 'audit/unwritable' });
  });

  test('keeps the file it has when a new one cannot be opened', async () => {
    const folder = join(dir, 'kept');
    await mkdir(folder);
    const path = join(folder, 'audit.log');
    const sink = await openFileSink({ path, onLost });
    await rename(folder, `${folder}-moved`);
    await expect(sink.reopen()).rejects.toMatchObject({ code: 'audit/unwritable' });
    sink.write('still here\n');
    await sink.close();
    expect(await readFile(join(`${folder}-moved`, 'audit.log'), 'utf8')).toBe('still here\n');
  });

  test('tells of lines beyond what may wait, and of lines after its end', async () => {
    const path = join(dir, 'bounded.log');
    const lost: number[] = [];
    const sink = await openFileSink({ path, onLost: (lines) => lost.push(lines), maxPendingBytes: 10 });
    sink.write('12345678\n');
    sink.write('12345678\n');
    await sink.close();
    sink.write('late\n');
    expect(lost).toEqual([1, 1]);
    expect(await readFile(path, 'utf8')).toBe('12345678\n');
  });

  // What a full disk does, without one: Linux offers a device for it.
  test.skipIf(process.platform !== 'linux')('tells of lines that the disk refuses', async () => {
    await chmod(dir, 0o700);
    const lost: number[] = [];
    const sink = await openFileSink({ path: '/dev/full', onLost: (lines) => lost.push(lines) });
    sink.write('one\n');
    sink.write('two\n');
    await sink.close();
    expect(lost.reduce((sum, lines) => sum + lines, 0)).toBe(2);
  });
});

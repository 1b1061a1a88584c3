import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { openProgress } from '../print/progress.ts';
import { decodeRunConfig } from '../run-config/decode.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { systemClock } from '../supervisor/clock.ts';
import { writeStatus } from '../supervisor/state.ts';
import { launchSaved } from './launch-saved.ts';

const supervisor = { pid: 4711, started: 'then' };
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-launch-'));
});
afterEach(() => rm(home, { recursive: true }));

test('a start that cannot reach the supervisor leaves that alone, which hosts others too, and says what is left', async () => {
  const where = places({ env: {}, home, platform: 'linux', temp: home });
  const config = decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'stdio', port: 4001 }, 'test');
  await saveRunConfig(where, config);
  const now = new Date().toISOString();
  const hosting = { process_id: supervisor.pid, process_started: supervisor.started };
  await writeStatus(where, 'a1', { status: 'running', created_at: now, updated_at: now, ...hosting });
  const signalled: number[] = [];
  let told = '';
  const terminal = { out() {}, err: (text: string) => void (told += text), interactive: false };
  const context = {
    places: where,
    env: {},
    uid: process.getuid?.(),
    platform: 'linux',
    self: { pid: process.pid, started: 'me' },
    // Ends at once, without ever listening.
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    terminal,
    clock: systemClock,
    signal: new AbortController().signal,
    isAlive: ({ pid }: { pid: number }) => pid === supervisor.pid && signalled.length === 0,
    end: (pid: number) => void signalled.push(pid),
    dropInherited() {},
  } as unknown as Context;
  const progress = openProgress(context.terminal);
  await expect(launchSaved(config, { foreground: false, progress, context })).rejects.toMatchObject({
    code: 'supervisor/unreachable',
  });
  expect(signalled).toEqual([]);
  expect(told).toContain('do it with skep rm a1');
  expect(await readdir(where.runConfigsDir)).toEqual(['a1.json']);
});

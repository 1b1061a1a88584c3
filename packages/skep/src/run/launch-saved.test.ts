import { mkdtemp, readdir, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places, type Places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { Context } from '../cli/context.ts';
import { openProgress } from '../print/progress.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { saveRunConfig } from '../run-config/file.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { writeStatus } from '../supervisor/state.ts';
import { launchSaved } from './launch-saved.ts';

const supervisor = { pid: 4711, started: 'then' };
let home: string;

beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-launch-'));
});
afterEach(() => rm(home, { recursive: true }));

/** A command of this user, whose supervisor never comes up, with what it would print and signal. */
function command(uid = process.getuid?.()) {
  const where = places({ env: {}, home, platform: 'linux', temp: home });
  const signalled: number[] = [];
  const told: string[] = [];
  const terminal = { out() {}, err: (text: string) => void told.push(text), interactive: false };
  const context = {
    places: where,
    env: {},
    uid,
    platform: 'linux',
    self: { pid: process.pid, started: 'me' },
    // Ends at once, without ever listening.
    program: { node: '/bin/false', entry: 'x', version: '1.0.0' },
    terminal,
    clock: systemClock,
    signal: new AbortController().signal,
    isAlive: ({ pid }: { pid: number }) => pid === supervisor.pid && signalled.length === 0,
    lacksGroups: () => false,
    end: (pid: number) => void signalled.push(pid),
  } as unknown as Context;
  const launch = async (config: RunConfig, foreground = false): Promise<void> =>
    launchSaved(config, { foreground, progress: openProgress(context.terminal), context });
  return { where, launch, signalled, told };
}

const saved = (host = '127.0.0.1') =>
  decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'stdio', host, port: 4001 }, 'test');

/** As if that workload was hosted by another process. */
async function hostedElsewhere(where: Places): Promise<void> {
  const now = new Date().toISOString();
  const hosting = { process_id: supervisor.pid, process_started: supervisor.started };
  await writeStatus(where, 'a1', { status: 'running', created_at: now, updated_at: now, ...hosting });
}

test('a start that cannot reach the supervisor leaves that alone, which hosts others too, and says what is left', async () => {
  const { where, launch, signalled, told } = command();
  await saveRunConfig(where, saved());
  await hostedElsewhere(where);
  await expect(launch(saved())).rejects.toMatchObject({ code: 'supervisor/unreachable' });
  expect(signalled).toEqual([]);
  expect(told.join('')).toContain('do it with skep rm a1');
  expect(await readdir(where.runConfigsDir)).toEqual(['a1.json']);
});

test.each([
  ['0.0.0.0', ['Warning: listening on 0.0.0.0: whoever reaches this address from another machine can use the server without signing in']], // prettier-ignore
  ['127.0.0.1', []],
])('a server on %s is started with a warning where the person is: %j', async (host, expected) => {
  const { launch, told } = command();
  await expect(launch(saved(host))).rejects.toMatchObject({ code: 'supervisor/unreachable' });
  expect(told.filter((text) => text.includes('listening')).map((text) => text.trim())).toEqual(expected);
});

test('in the state of another user nothing is hosted, and no process that it names is signalled', async () => {
  const { where, launch, signalled } = command(Number(process.getuid?.()) + 1);
  await hostedElsewhere(where);
  await expect(launch(saved(), true)).rejects.toMatchObject({
    code: 'supervisor/unreachable',
    message: expect.stringContaining('belongs to another user'),
  });
  expect(signalled).toEqual([]);
});

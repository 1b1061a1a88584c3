import { mkdtemp, readFile, rm, writeFile, mkdir } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { places } from '@skep/core/files/places.ts';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { readStatus, readStatuses, writeStatus, type StatusWord } from '../supervisor/state.ts';
import { lockName } from './name-lock.ts';
import { toListItem, toMcpServers, uptimeOf } from './to-json.ts';
import { viewWorkload, viewWorkloads, type WorkloadView } from './view.ts';

let home: string;
let where: ReturnType<typeof places>;
beforeEach(async () => {
  home = await mkdtemp(join(tmpdir(), 'skep-view-'));
  where = places({ env: {}, home, platform: 'linux', temp: home });
});
afterEach(() => rm(home, { recursive: true }));

async function workload(name: string, status: StatusWord, more: object = {}): Promise<void> {
  const config = { name, image: 'x/y:1', transport: 'stdio', port: 4001, ...more };
  await saveRunConfig(where, decodeRunConfig(config, 'test'));
  const time = '2026-01-02T03:04:05.000Z';
  const process =
    status === 'running' ? { process_id: 7, process_started: 's' } : { process_id: 0, process_started: '' };
  await writeStatus(where, name, {
    status,
    created_at: time,
    updated_at: time,
    started_at: time,
    ...process,
  });
}

const alive = { isAlive: () => true };
const dead = { isAlive: () => false };

describe('a workload as people see it', () => {
  test.each(['x', '', '../a1', 'a b'])('is not there under a name that none can have: %j', async (name) => {
    await expect(viewWorkload(name, { places: where, ...alive })).rejects.toMatchObject({
      code: 'run/invalid-name',
    });
  });
  test('has the keys that scripts rely on, in their order', async () => {
    await workload('a1', 'running', {
      env_vars: { TOKEN: 'hush' },
      container_labels: { team: 'blue', 'skep.x': '1' },
    });
    const item = toListItem(await viewWorkload('a1', { places: where, ...alive }), null);
    expect(item).toEqual({
      name: 'a1',
      package: 'x/y:1',
      url: 'http://127.0.0.1:4001/mcp',
      port: 4001,
      transport_type: 'stdio',
      proxy_mode: 'streamable-http',
      status: 'running',
      created_at: '2026-01-02T03:04:05.000Z',
      started_at: '2026-01-02T03:04:05.000Z',
      labels: { team: 'blue' },
      group: 'default',
      front_url: null,
      tool_calls: null,
    });
    expect(Object.keys(item).slice(0, 5)).toEqual(['name', 'package', 'url', 'port', 'transport_type']);
  });
  test('whose process died is unhealthy to the eye, and its file is not touched', async () => {
    await workload('a1', 'running');
    expect(await viewWorkload('a1', { places: where, ...dead })).toMatchObject({ status: 'unhealthy' });
    expect(await readStatus(where, 'a1')).toMatchObject({ status: 'running' });
  });
  test('of a package is shown as the reference a person would type', async () => {
    await workload('a1', 'stopped', {
      package: { kind: 'package', ecosystem: 'npm', name: '@a/b', version: '1.0.0' },
    });
    expect((await viewWorkload('a1', { places: where, ...alive })).package).toBe('npx://@a/b@1.0.0');
  });
  test('with a damaged file does not hide the others', async () => {
    await workload('a1', 'running');
    await mkdir(where.statusesDir, { recursive: true });
    await writeFile(join(where.statusesDir, 'b1.json'), '{"status":');
    const views = await viewWorkloads({ places: where, ...alive });
    expect(views.map((view) => [view.name, view.status])).toEqual([
      ['a1', 'running'],
      ['b1', 'unknown'],
    ]);
  });
  test.each([
    ['no JSON', Buffer.from('{')],
    ['no UTF-8', Buffer.from([0xff, 0xfe])],
    ['another shape', Buffer.from('[]')],
    ['too much', Buffer.alloc(5 * 1024 * 1024, ' ')],
  ])('with %s for a run configuration is unknown, and does not hide the others', async (_, bytes) => {
    await workload('a1', 'running');
    await workload('b1', 'running');
    await writeFile(join(where.runConfigsDir, 'b1.json'), bytes);
    const views = await viewWorkloads({ places: where, ...alive });
    expect(views).toMatchObject([
      { name: 'a1', status: 'running' },
      { name: 'b1', status: 'unknown' },
    ]);
    expect(views[1]?.context).toContain('b1.json');
  });
  test('is seen in a list by what is shown of it, and by itself as a whole', async () => {
    await workload('a1', 'running');
    const path = join(where.runConfigsDir, 'a1.json');
    const saved = JSON.parse(await readFile(path, 'utf8')) as object;
    await writeFile(path, JSON.stringify({ ...saved, cmd_args: 'no list' }));
    expect(await viewWorkloads({ places: where, ...alive })).toMatchObject([{ status: 'running' }]);
    expect(await viewWorkload('a1', { places: where, ...alive })).toMatchObject({
      status: 'unknown',
      context: expect.stringContaining('"cmd_args": must be a list'),
    });
  });
  test('is not read again where its status was read a moment ago', async () => {
    await workload('a1', 'running');
    const statuses = await readStatuses(where, (name) => expect.fail(name));
    await workload('a1', 'stopped');
    const look = { places: where, ...alive };
    expect(await viewWorkloads(look, statuses)).toMatchObject([{ status: 'running' }]);
    expect(await viewWorkloads(look)).toMatchObject([{ status: 'stopped' }]);
  });
  test('that is a directory in place of a file is unknown too', async () => {
    await mkdir(join(where.statusesDir, 'b1.json'), { recursive: true });
    expect(await viewWorkload('b1', { places: where, ...alive })).toMatchObject({ status: 'unknown' });
  });
  test('whose start was killed is an error, but not while a command still makes it', async () => {
    await saveRunConfig(where, decodeRunConfig({ name: 'a1', image: 'x/y', transport: 'stdio' }, 'test'));
    const lock = await lockName('a1', { places: where, signal: new AbortController().signal });
    expect(await viewWorkloads({ places: where, ...alive })).toEqual([]);
    lock.release();
    expect(await viewWorkloads({ places: where, ...alive })).toMatchObject([
      { name: 'a1', status: 'error', context: expect.stringContaining('skep rm a1') },
    ]);
  });
  test('that is not there is not found', async () => {
    await expect(viewWorkload('nobody', { places: where, ...alive })).rejects.toMatchObject({
      code: 'workload/not-found',
    });
  });
  test('is an entry for MCP clients', async () => {
    await workload('a1', 'running');
    expect(toMcpServers(await viewWorkloads({ places: where, ...alive }))).toEqual({
      mcpServers: { a1: { url: 'http://127.0.0.1:4001/mcp', type: 'streamable-http' } },
    });
  });
});

describe('uptime', () => {
  const view = { status: 'running', startedAt: new Date(0) } as WorkloadView;
  test.each([
    [30_000, '0m'],
    [61_000, '1m'],
    [3_600_000, '1h 0m'],
    [(26 * 60 + 3) * 60_000, '1d 2h 3m'],
  ])('%d ms is %s', (ms, text) => {
    expect(uptimeOf(view, new Date(ms))).toBe(text);
  });
  test('only what runs has one', () => {
    expect(uptimeOf({ ...view, status: 'stopped' }, new Date())).toBeUndefined();
  });
});

import { once } from 'node:events';
import { createServer } from 'node:net';
import { chmod, mkdir, readdir, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest';
import {
  commandUnderTest,
  type CommandUnderTest,
  type MachineUnderTest,
} from '../command-under-test.fixture.ts';
import { displayWidth } from '../print/table.ts';
import { lookAtReboots } from '../doctor/supervisor.ts';
import { turnOn } from '../autostart/autostart.ts';
import { writeRecord } from '../clients/record.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { CHECKS } from '../doctor/checks.ts';
import { ownerOf } from '../supervisor/owner.ts';
import { catalogueOf } from './catalogue.fixture.ts';

const program = { node: process.execPath, entry: import.meta.filename };
const machine = (more: MachineUnderTest = {}): Promise<CommandUnderTest> =>
  commandUnderTest({ supervisor: 'none', program, ...more });

interface Item {
  readonly code: string;
  readonly verdict: string;
  readonly text: string;
  readonly remedy: string | null;
  readonly fixed: string | null;
}

async function examined(skep: CommandUnderTest, flags = '', env: Record<string, string> = {}) {
  const { out, status } = await skep.run(`doctor --format json ${flags}`, { env });
  const items = JSON.parse(out) as readonly Item[];
  return { status, of: (code: string): Item | undefined => items.find((one) => one.code === code), items };
}

const make = async (path: string, content: string, mode = 0o600): Promise<void> => {
  await mkdir(join(path, '..'), { recursive: true, mode: 0o750 });
  await writeFile(path, content, { mode });
};

const SPEC = {
  reference: 'fake:1',
  args: [],
  env: {},
  stdio: true,
  mounts: [],
  network: 'none',
  ports: [],
  privileged: false,
};
type Breaks = (machine: CommandUnderTest) => Promise<unknown>;

afterEach(() => vi.restoreAllMocks());

describe('skep doctor', () => {
  test('finds nothing broken on a machine that is well, and ends with 0', async () => {
    const { status, items } = await examined(await machine());
    expect(items.filter(({ verdict }) => verdict === 'broken')).toEqual([]);
    expect(status).toBe(0);
    expect(new Set(items.map(({ verdict }) => verdict))).toContain('ok');
  });

  test.each<[code: string, verdict: string, text: RegExp, breaks: Breaks]>([
    [
      'SKEP-D020',
      'broken',
      /wrong permissions/,
      async ({ places }) => {
        await mkdir(places.stateDir, { recursive: true });
        await chmod(places.stateDir, 0o777);
      },
    ],
    ['SKEP-D020', 'broken', /not a directory/, (skep) => make(skep.places.stateDir, '')],
    ['SKEP-D021', 'broken', /unknown key/, (skep) => skep.configure('registri_url: x\n')],
    ['SKEP-D022', 'broken', /one/, (skep) => make(join(skep.places.statusesDir, 'one.json'), '{')],
    ['SKEP-D022', 'broken', /two/, (skep) => make(join(skep.places.runConfigsDir, 'two.json'), '{}')],
    [
      'SKEP-D023',
      'warning',
      /three/,
      (skep) => make(join(skep.places.runConfigsDir, 'three.txt'), '{}', 0o644),
    ],
    [
      'SKEP-D023',
      'warning',
      /four.json/,
      (skep) => make(join(skep.places.previousDir, 'four.json'), '{}', 0o644),
    ],
    ['SKEP-D023', 'warning', /secrets_/, (skep) => make(skep.places.secretsFile, '', 0o640)],
    ['SKEP-D024', 'note', /1 of/, (skep) => make(join(skep.places.locksDir, 'run.gone.lock'), '')],
    ['SKEP-D025', 'warning', /index/, (skep) => make(join(skep.places.cacheDir, 'catalogue-index'), '[\n[')],
    ['SKEP-D030', 'note', /left/, (skep) => make(join(skep.places.supervisorDir, 'old.sock'), '')],
    ['SKEP-D040', 'broken', /absent.json/, (skep) => skep.configure('local_registry_path: /absent.json\n')],
  ])('%s is %s: %s', async (code, verdict, text, breaks) => {
    const skep = await machine();
    await breaks(skep);
    const { of, status } = await examined(skep);
    expect(of(code)).toMatchObject({
      verdict,
      text: expect.stringMatching(text),
      remedy: expect.any(String),
    });
    expect(status).toBe(verdict === 'broken' ? 1 : 0);
  });

  test.each([
    ['SKEP-D004', { SSL_CERT_FILE: '/absent.pem' }],
    ['SKEP-D005', { https_proxy: 'socks5://user:hunter2@proxy' }],
  ])('%s looks at the environment, and repeats no secret of it', async (code, env) => {
    const { of, items } = await examined(await machine(), '', env);
    expect(of(code)).toMatchObject({ verdict: 'broken' });
    expect(JSON.stringify(items)).not.toContain('hunter2');
  });

  test('a program that moved, a clock that is behind, an engine that does not answer', async () => {
    const clock = { ...(await import('@skep/core/time/clock.ts')).systemClock, now: () => 0 };
    const skep = await machine({ program: { ...program, node: '/absent/node' }, clock });
    vi.spyOn(skep.runtime, 'probe').mockRejectedValue(new SkepError('runtime/engine-unreachable'));
    const { of } = await examined(skep);
    expect(of('SKEP-D001')).toMatchObject({
      verdict: 'broken',
      text: expect.stringContaining('/absent/node'),
    });
    expect(of('SKEP-D003')).toMatchObject({ verdict: 'broken', text: expect.stringContaining('1970') });
    expect(of('SKEP-D010')).toMatchObject({ verdict: 'broken' });
    expect(of('SKEP-D011')).toMatchObject({ verdict: 'warning' });
  });

  test('what fetches packages for the sandbox is told, with what is missing', async () => {
    const skep = await machine({ runtime: new MemoryRuntime({}, 'sandbox') });
    const bin = join(skep.places.stateDir, 'bin');
    const without = await examined(skep, '', { PATH: bin });
    expect(without.of('SKEP-D014')).toMatchObject({ verdict: 'note' });
    expect(without.of('SKEP-D014')?.text).toContain('no go://: Go was not found');
    const told = { GOROOT: '/go', GOVERSION: 'go9.8.7', GOPROXY: 'off', GOSUMDB: 'off' };
    await make(join(bin, 'go'), `#!/bin/sh\necho '${JSON.stringify(told)}'\n`, 0o700);
    const there = await examined(skep, '', { PATH: bin });
    expect(there.of('SKEP-D014')?.text).toContain('go9.8.7');
    expect((await examined(await machine())).of('SKEP-D014')).toBeUndefined();
  });

  test('who holds the limits of servers is told, with what nobody holds', async () => {
    const skep = await machine();
    const held = await examined(skep);
    expect(held.of('SKEP-D015')).toMatchObject({ verdict: 'ok', text: 'held by a test' });
    vi.spyOn(skep.runtime, 'cautions').mockResolvedValue(['its memory is not limited']);
    const { of } = await examined(skep);
    expect(of('SKEP-D015')).toMatchObject({
      verdict: 'note',
      text: 'held by a test; its memory is not limited',
    });
  });

  test('what nobody hosts, and what runs for no server that is known, is named and left alone', async () => {
    const skep = await machine();
    const { places, runtime } = skep;
    const now = new Date().toISOString();
    const status = {
      status: 'running',
      created_at: now,
      updated_at: now,
      process_id: 1,
      process_started: '',
    };
    await make(join(places.statusesDir, 'one.json'), JSON.stringify(status));
    const labels = { 'skep.managed': 'true', 'skep.state': ownerOf(places.stateDir) };
    for (const name of ['one', 'two', 'three'])
      await runtime.create({ ...SPEC, name, labels: name === 'three' ? {} : labels });
    const { of } = await examined(skep, '--fix');
    expect(of('SKEP-D031')).toMatchObject({ verdict: 'warning', text: 'nobody hosts one', fixed: null });
    expect(of('SKEP-D032')).toMatchObject({ verdict: 'warning', text: 'two', fixed: null });
    expect(await runtime.list()).toHaveLength(3);
  });

  test('a front door whose port another program has', async () => {
    const skep = await machine();
    const other = createServer((socket) => void socket.destroy()).listen(0, '127.0.0.1');
    onTestFinished(() => void other.close());
    await once(other, 'listening');
    const address = other.address();
    const port = typeof address === 'object' ? `${address?.port}` : '';
    const taken = await examined(skep, '', { SKEP_FRONT_PORT: port });
    expect(taken.of('SKEP-D034')).toMatchObject({
      verdict: 'warning',
      text: expect.stringContaining(`port ${port} is taken by`),
      remedy: expect.stringContaining('front-port'),
    });
    const none = await examined(skep, '', { SKEP_FRONT_PORT: '0' });
    expect(none.of('SKEP-D034')).toMatchObject({ verdict: 'note' });
    expect((await examined(skep, '', { SKEP_FRONT_PORT: 'x' })).of('SKEP-D021')).toMatchObject({
      verdict: 'broken',
    });
  });

  test('the file of a connected client that cannot be read any more, and of no other client', async () => {
    const skep = await machine();
    const file = join(skep.home, '.cursor/mcp.json');
    await make(file, '{ "mcpServers": {} }');
    expect((await examined(skep)).of('SKEP-D041')).toBeUndefined();
    await writeRecord(skep.places, 'cursor', { stdio: false, workloads: ['one'], entries: [], made: false });
    expect((await examined(skep)).of('SKEP-D041')).toMatchObject({
      verdict: 'ok',
      text: expect.stringContaining('Cursor'),
    });
    await writeFile(file, '{ "mcpServers": {');
    const { of, status } = await examined(skep, '--fix');
    expect(of('SKEP-D041')).toMatchObject({
      verdict: 'warning',
      text: expect.stringContaining('mcp.json'),
      fixed: null,
    });
    expect(status).toBe(0);
    expect(await readFile(file, 'utf8')).toBe('{ "mcpServers": {');
  });

  test('secrets that cannot be read without a question, and says none of them', async () => {
    const keyring = new MemoryKeyring();
    const skep = await machine({ keyrings: [keyring] });
    const look = async (env = {}) => (await examined(skep, '', env)).of('SKEP-D042');
    expect(await look()).toBeUndefined();
    await skep.output('secret set github', { input: 'hunter2' });
    expect(await look()).toMatchObject({ verdict: 'ok', text: 'encrypted, 1 stored' });
    keyring.held.clear();
    const { out } = await skep.run('doctor --format json', { answers: {} });
    expect(out).toContain('the secrets store is locked');
    expect(out).not.toContain('hunter2');
    expect(await look({ SKEP_SECRETS_PASSWORD: 'wrong' })).toMatchObject({
      verdict: 'warning',
      text: expect.stringContaining('password'),
    });
    expect(await look({ SKEP_SECRETS_PROVIDER: 'none' })).toMatchObject({ verdict: 'ok' });
    expect(await look({ SKEP_SECRETS_PROVIDER: 'environment' })).toMatchObject({ verdict: 'ok' });
    expect(await look({ SKEP_SECRETS_PROVIDER: 'x' })).toMatchObject({ verdict: 'warning' });
  });

  test('--fix mends permissions, locks, sockets and caches, says so, and touches nothing else', async () => {
    const skep = await machine();
    const { places } = skep;
    await make(join(places.statusesDir, 'one.json'), '{', 0o644);
    await make(join(places.locksDir, 'run.gone.lock'), '');
    await make(join(places.cacheDir, 'sandbox-proof.json'), '{');
    await make(join(places.supervisorDir, 'old.sock'), '');
    await chmod(places.dataDir, 0o707);
    const before = await examined(skep);
    expect(before.items.every(({ fixed }) => fixed === null)).toBe(true);
    expect((await stat(places.dataDir)).mode & 0o777).toBe(0o707);
    const { items, status } = await examined(skep, '--fix');
    const fixed = items.filter((one) => one.fixed !== null);
    expect(fixed.map(({ code, verdict }) => [code, verdict])).toEqual([
      ['SKEP-D020', 'ok'],
      ['SKEP-D023', 'ok'],
      ['SKEP-D024', 'ok'],
      ['SKEP-D025', 'ok'],
      ['SKEP-D030', 'ok'],
    ]);
    // A damaged server is for a person to remove.
    expect(status).toBe(1);
    expect(await readdir(places.statusesDir)).toEqual(['one.json']);
    expect((await stat(join(places.statusesDir, 'one.json'))).mode & 0o777).toBe(0o600);
  });

  test('a check that never ends is told of, and keeps the others from nothing', async () => {
    const skep = await machine();
    vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => AbortSignal.abort());
    vi.spyOn(skep.runtime, 'probe').mockImplementation(() => new Promise(() => {}));
    const { of } = await examined(skep);
    expect(of('SKEP-D010')).toMatchObject({ verdict: 'broken', text: 'no answer in 10 s' });
    vi.restoreAllMocks();
  });

  test.each([60, 80, 120])('fits a terminal of %d columns', async (widthOut) => {
    const skep = await machine();
    await skep.configure('local_registry_path: /absent.json\n');
    const { out, err } = await skep.run('doctor', { terminal: { widthOut } });
    const tooLong = out
      .split('\n')
      .filter((line) => displayWidth(line) > widthOut && /\s.*\s/.test(line.slice(12)));
    expect(tooLong).toEqual([]);
    expect(out).toMatch(/✗ SKEP-D040 Catalogue: .*\n(?: {12}.*\n)* {12}→ /);
    expect(err).toContain('broken: SKEP-D040');
  });
});

test('what starts after a reboot is looked at where anything does', async () => {
  const skep = await machine();
  const context = {
    env: {},
    cwd: '/',
    home: skep.home,
    platform: 'linux',
    program: { ...program, version: '1' },
  } as const;
  const starter = { ...context, hasSystemd: true, homeOfUser: skep.home };
  const look = (more = {}) => lookAtReboots({ ...starter, ...more });
  expect(await look({ hasSystemd: false })).toBeUndefined();
  expect(await look()).toMatchObject({ verdict: 'ok', text: expect.stringContaining('skep autostart on') });
  await turnOn(starter);
  expect(await look()).toMatchObject({ verdict: 'ok', text: expect.stringContaining('skep.service') });
  expect(await look({ env: { PATH: '/other' } })).toMatchObject({ verdict: 'warning' });
});

test('every check has a code of its own, for ever', () => {
  expect(CHECKS.map(({ code }) => code)).toEqual([...new Set(CHECKS.map(({ code }) => code))].toSorted());
  for (const { code } of CHECKS) expect(code).toMatch(/^SKEP-D\d{3}$/);
});

describe('skep runtime check', () => {
  test('says that the runtime answers', async () => {
    expect(await (await machine()).output('runtime check')).toBe(
      'Container runtime is responsive: docker 1 at memory\n',
    );
  });

  test('fails with the reason where it does not', async () => {
    const skep = await machine({ catalogue: catalogueOf({}) });
    vi.spyOn(skep.runtime, 'probe').mockRejectedValue(
      new SkepError('runtime/engine-unreachable', { message: 'the container engine does not answer' }),
    );
    expect(await skep.refusal('runtime check')).toContain('the container engine does not answer');
  });

  test('waits no longer than it is told', async () => {
    const skep = await machine();
    const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => AbortSignal.abort());
    vi.spyOn(skep.runtime, 'probe').mockImplementation(() => new Promise(() => {}));
    expect(await skep.refusal('runtime check --timeout 7')).toContain('no answer in 7 s');
    expect(timeout).toHaveBeenCalledWith(7000);
  });
});

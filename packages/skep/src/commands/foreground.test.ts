import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  ctrlC,
  NOTHING_LEFT,
  type CommandUnderTest,
  type Outcome,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { MemoryProgram } from '../runtime/doubles/program.ts';

/** A server that answers `initialize` and says nothing else. */
const answering: MemoryProgram = (process) => {
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as {
      id?: unknown;
      method: string;
      params?: { protocolVersion?: unknown };
    };
    if (method !== 'initialize') return;
    const result = {
      protocolVersion: params?.protocolVersion,
      capabilities: {},
      serverInfo: { name: 'answering', version: '2' },
    };
    process.write(`${JSON.stringify({ jsonrpc: '2.0', id, result })}\n`);
  });
};

const bench = (): Promise<CommandUnderTest> =>
  commandUnderTest({ runtime: new MemoryRuntime({ 'fake:1': answering }), supervisor: 'asked' });

describe('skep run --foreground', () => {
  test('hosts the server behind a real proxy until Ctrl-C, and leaves nothing', async () => {
    const skep = await bench();
    const pressed = ctrlC();
    let answer: Promise<unknown> | undefined;
    const { status, out, err } = await skep.run('run fake:1 --name a1 --foreground', {
      signal: pressed.signal,
      onOut(url) {
        answer = initialize(url.trim()).finally(pressed.press);
      },
    });
    expect(status).toBe(0);
    expect(out).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp\n$/);
    expect(err).toContain('a1 is running (answering 2): no tools\n');
    expect(err).toContain('\nPress Ctrl-C to stop and remove it.\n');
    expect(await answer).toMatchObject({ serverInfo: { name: 'answering', version: '2' } });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('is shown by other commands like any other while it runs', async () => {
    const skep = await bench();
    const pressed = ctrlC();
    let listed: Promise<string> | undefined;
    await skep.run('run fake:1 --name a1 -f', {
      signal: pressed.signal,
      onOut() {
        listed = skep.output('list --format json').finally(pressed.press);
      },
    });
    expect(JSON.parse((await listed) ?? '')).toMatchObject([{ name: 'a1', status: 'running' }]);
  });

  test('leaves nothing of a server that a file described', async () => {
    const skep = await bench();
    await skep.write('a1.json', { name: 'a1', image: 'fake:1', transport: 'stdio', port: 0 });
    const pressed = ctrlC();
    const line = 'run --from-config a1.json --foreground';
    const { status, out } = await skep.run(line, { signal: pressed.signal, onOut: () => pressed.press() });
    expect({ status, out }).toEqual({ status: 0, out: expect.stringMatching(/^http:/) });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('leaves nothing of a server that crashes at its start', async () => {
    const skep = await bench();
    skep.runtime.crash = { exitCode: 4, says: 'no token\n' };
    const { status, out, err } = await skep.run('run fake:1 --name a1 --foreground');
    expect({ status, out }).toEqual({ status: 1, out: '' });
    expect(err).toContain('  no token\n');
    expect(err).toContain('with exit status 4');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('asks nothing and says no URL before the server can be used', async () => {
    const runtime = new MemoryRuntime({ 'fake:1': () => {} });
    const skep = await commandUnderTest({ runtime, supervisor: 'asked' });
    const pressed = ctrlC();
    const running = skep.run('run fake:1 --name a1 --foreground', { signal: pressed.signal });
    await expect.poll(() => runtime.startsOf('a1'), { timeout: 9_000 }).toBe(1);
    pressed.press();
    expect(await running).toMatchObject({ status: 1, out: '' });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });
});

describe('skep run --foreground after it was killed', () => {
  test.each([
    ['the same server', 'run fake:1 --name a1 --foreground'],
    ['another version of it', 'run fake:2 --name a1 --foreground'],
  ])('takes up its own name for %s', async (_, line) => {
    const skep = await killed();
    const pressed = ctrlC();
    const outcome = await skep.run(line, { signal: pressed.signal, onOut: () => pressed.press() });
    expect(outcome).toMatchObject({ status: 0, out: expect.stringMatching(/^http:/) });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test.each([
    ['of another server', 'run example/tools:2 --name a1 --foreground'],
    ['that does not end with its command', 'run fake:1 --name a1'],
  ])('keeps the name from a run %s', async (_, line) => {
    const skep = await killed();
    expect(await skep.refusal(line)).toMatch(/^Error: workload with name 'a1' already exists; .*skep rm a1/);
    expect(await skep.left()).toMatchObject({ saved: ['a1'], statuses: ['a1'] });
  });

  test('keeps the name while its process lives', async () => {
    const skep = await killed({ started: undefined });
    expect(await skep.refusal('run fake:1 --name a1 --foreground')).toContain("'a1' already exists");
  });

  test('leaves a workload of the supervisor alone, also where that is away', async () => {
    const skep = await bench();
    await skep.output('run fake:1 --name a1');
    await skep.killSupervisor();
    expect(await skep.refusal('run fake:1 --name a1 --foreground')).toContain("'a1' already exists");
  });
});

/** With what a command in the foreground has written while it hosted `a1`, and no other trace of it. */
async function killed(
  { started }: { readonly started: string | undefined } = { started: 'another-boot 4711' },
): Promise<CommandUnderTest> {
  const runtime = new MemoryRuntime({
    'fake:1': answering,
    'fake:2': answering,
    'example/tools:2': answering,
  });
  const skep = await commandUnderTest({ runtime, supervisor: 'asked' });
  const files = [skep.places.statusesDir, skep.places.runConfigsDir].map((dir) => path.join(dir, 'a1.json'));
  const pressed = ctrlC();
  let written: Promise<readonly string[]> = Promise.resolve([]);
  await skep.run('run fake:1 --name a1 --foreground', {
    signal: pressed.signal,
    onOut() {
      written = Promise.all(files.map((file) => readFile(file, 'utf8'))).finally(pressed.press);
    },
  });
  const [status = '', config = ''] = await written;
  const later = started === undefined ? {} : { process_started: started };
  const texts = [JSON.stringify({ ...(JSON.parse(status) as object), ...later }), config];
  for (const [index, file] of files.entries()) await writeFile(file, texts[index] ?? '');
  return skep;
}

describe('skep start --foreground', () => {
  test('hosts a stopped workload on its address, and removes it at the end', async () => {
    const skep = await bench();
    const url = await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    const pressed = ctrlC();
    const outcome = await skep.run('start --foreground a1', {
      signal: pressed.signal,
      onOut: () => pressed.press(),
    });
    expect(outcome).toMatchObject({ status: 0, out: url });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('is not ended by an upgrade, nor by one that is undone', async () => {
    const runtime = new MemoryRuntime({ 'fake:1': answering, 'fake:2': answering });
    const skep = await commandUnderTest({ runtime, supervisor: 'asked' });
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    await skep.output('upgrade a1 --to 2 --yes');
    const pressed = ctrlC();
    let refused: Promise<readonly Outcome[]> | undefined;
    await skep.run('start --foreground a1', {
      signal: pressed.signal,
      onOut() {
        const upgrades = ['upgrade a1 --to 1 --yes', 'upgrade a1 --undo'].map((line) => skep.run(line));
        refused = Promise.all(upgrades).finally(pressed.press);
      },
    });
    const said = (await refused)?.map(({ err }) => err);
    const isRefused: unknown = expect.stringContaining('a1 runs in the foreground of another command');
    expect(said).toEqual([isRefused, isRefused]);
  });

  test.each([
    ['start --foreground a1 a2', 'Error: --foreground takes exactly one name; keep one of them\n'],
    [
      'start --foreground missing',
      'Error: workload "missing" not found; see the names with skep list --all\n',
    ],
  ])('%s is refused', async (line, message) => {
    const skep = await bench();
    expect(await skep.refusal(line)).toBe(message);
  });
});

async function initialize(url: string): Promise<unknown> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { 'content-type': 'application/json', accept: 'application/json, text/event-stream' },
    body: JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'initialize',
      params: { protocolVersion: '2025-06-18', capabilities: {}, clientInfo: { name: 'test', version: '1' } },
    }),
  });
  const text = await response.text();
  const { result } = JSON.parse(text.replace(/^(?:event: .*\n|id: .*\n|data: )*/, '')) as { result: unknown };
  return result;
}

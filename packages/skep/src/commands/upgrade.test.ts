import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  NOTHING_LEFT,
  type CommandUnderTest,
  type Outcome,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle, type MemoryProgram } from '../runtime/doubles/program.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

let skep: CommandUnderTest;
let runtime: MemoryRuntime;
/** What the server offers; a test changes it while the server is away. */
let tools: object[];

const dies: MemoryProgram = (process) => process.exit(1);

const PROGRAMS = {
  'fake@1.0.0': idle,
  'fake@2.0.0': idle,
  'fake@6.6.6': dies,
  'img:1': idle,
  'img:2': idle,
};

beforeEach(async () => {
  runtime = new MemoryRuntime(PROGRAMS);
  runtime.versions.set('fake', '2.0.0');
  tools = [{ name: 'read' }, { name: 'write' }];
  skep = await commandUnderTest({ runtime, tools });
});

interface Shown {
  readonly package: string;
  readonly url: string;
  readonly status: string;
}
const shown = async (): Promise<Shown> => JSON.parse(await skep.output('status a1 --format json')) as Shown;
const runs = async (): Promise<string | undefined> => (await runtime.inspect('a1'))?.reference;
const yes = { agrees: true };

const ran = (): Promise<string> => skep.output('run npx://fake@1.0.0 --name a1');

describe('skep upgrade', () => {
  test('says what changes, asks, and keeps name, URL and data', async () => {
    await ran();
    runtime.holding.add('a1');
    const { url } = await shown();
    expect(await skep.output('upgrade a1', yes)).toBe(
      'a1: npx://fake@1.0.0 → npx://fake@2.0.0\na1 runs npx://fake@2.0.0; skep upgrade --undo a1 goes back\n',
    );
    expect(skep.asked).toEqual(['Upgrade a1?']);
    expect(await shown()).toMatchObject({ url, status: 'running' });
    expect(await runs()).toBe('fake@2.0.0');
    expect(runtime.holding.has('a1')).toBe(true);
  });

  test('leaves what it comes from in place, also where another that ran from it is removed', async () => {
    await ran();
    await skep.output('run npx://fake@1.0.0 --name b1');
    await skep.output('upgrade a1', yes);
    await skep.output('rm b1');
    expect(runtime.discarded).toEqual([]);
    await skep.output('upgrade a1 --undo');
    expect(await runs()).toBe('fake@1.0.0');
  });

  test('says so where nothing is newer, and asks nobody', async () => {
    await skep.output('run npx://fake@2.0.0 --name a1');
    expect(await skep.output('upgrade a1')).toBe('a1 is up to date: npx://fake@2.0.0\n');
  });

  test('changes nothing where nobody can be asked, where the person says no, and with --dry-run', async () => {
    await ran();
    const before = await shown();
    const refused = await skep.run('upgrade a1');
    expect(refused).toMatchObject({ status: 1, err: expect.stringContaining('--yes') });
    expect(await skep.run('upgrade a1', { agrees: false })).toMatchObject({
      status: 1,
      err: expect.stringContaining('nothing was changed'),
    });
    expect(await skep.output('upgrade a1 --dry-run')).toBe('a1: npx://fake@1.0.0 → npx://fake@2.0.0\n');
    expect(await shown()).toEqual(before);
    expect(runtime.startsOf('a1')).toBe(1);
    expect(runtime.discarded).toEqual(['fake@2.0.0', 'fake@2.0.0', 'fake@2.0.0']);
  });

  test('goes to the version that is named, of a package and of an image', async () => {
    await ran();
    await skep.output('upgrade a1 --to 2.0.0 --yes');
    expect(await runs()).toBe('fake@2.0.0');
    await skep.output('run img:1 --name a2');
    await skep.output('upgrade a2 --to 2 --yes');
    expect((await runtime.inspect('a2'))?.reference).toBe('img:2');
    expect((await skep.run('upgrade --all --to 2 --yes')).err).toContain('exactly one name');
    expect((await skep.run(['upgrade', 'a1', '--yes', '--to', '-x'])).status).toBe(1);
    expect((await skep.run(['upgrade', 'a1', '--yes', '--to', '2 3'])).err).toContain('is no version');
  });

  test('a version that does not start is taken back, and the old one runs', async () => {
    await ran();
    const { url } = await shown();
    const { status, err } = await skep.run('upgrade a1 --to 6.6.6 --yes');
    expect(status).toBe(1);
    expect(err).toContain('a1 runs npx://fake@1.0.0 again, because npx://fake@6.6.6 did not start');
    expect(await shown()).toMatchObject({ url, status: 'running' });
    expect(await runs()).toBe('fake@1.0.0');
    expect((await skep.run('upgrade --undo a1')).err).toContain('no earlier version');
  });

  test.each(['stop', 'rm'])('a %s while the new version starts is the last word', async (command) => {
    let ended: Promise<Outcome> | undefined;
    let greeted = 0;
    const greet = async (name: string): Promise<unknown> => {
      greeted += 1;
      if (greeted === 1) return { serverInfo: { name } };
      ended ??= skep.run(`${command} a1`);
      return new Promise(() => {});
    };
    skep = await commandUnderTest({ runtime, greet });
    await ran();
    const upgraded = await skep.run('upgrade a1 --yes');
    expect(upgraded).toMatchObject({ status: 1, out: expect.not.stringContaining('a1 runs') });
    expect(upgraded.err).not.toContain('again, because');
    expect(await ended).toMatchObject({ status: 0, out: 'a1\n' });
    if (command === 'rm') {
      expect(await skep.left()).toEqual(NOTHING_LEFT);
      expect(await skep.run('upgrade --undo a1')).toMatchObject({ status: 1 });
      return;
    }
    expect(upgraded.err).toContain('a1 stays stopped, at npx://fake@1.0.0');
    expect(await shown()).toMatchObject({ status: 'stopped', package: 'npx://fake@1.0.0' });
  });

  test('a stopped workload stays stopped', async () => {
    await ran();
    await skep.output('stop a1');
    expect(await skep.output('upgrade a1 --yes')).toContain('a1 is stopped, at npx://fake@2.0.0');
    expect(await shown()).toMatchObject({ status: 'stopped' });
    await skep.output('start a1');
    expect(await runs()).toBe('fake@2.0.0');
  });

  test('shows how its tools change, and takes the version back that a person does not want', async () => {
    await ran();
    tools.splice(0, 2, { name: 'read', description: 'other' }, { name: 'delete' });
    const { out } = await skep.run('upgrade a1', { agrees: true });
    expect(out).toContain('  tools added: delete\n  tools gone: write\n  tools changed: read\n');
    expect(skep.asked).toEqual(['Upgrade a1?', 'Keep npx://fake@2.0.0?']);
    tools.splice(0, 1);
    const refused = await skep.run('upgrade a1 --to 1.0.0', { agrees: (asked) => asked === 'Upgrade a1?' });
    expect(refused.err).toContain('a1 is back at npx://fake@2.0.0, with the data it has now');
    expect(await runs()).toBe('fake@2.0.0');
    // The step before is still the one that can be undone.
    await skep.output('upgrade --undo a1');
    expect(await runs()).toBe('fake@1.0.0');
  });

  test('what was removed while the person thought about it does not come back', async () => {
    await ran();
    let removing: Promise<unknown> | undefined;
    const agrees = async (): Promise<boolean> => {
      removing ??= skep.output('rm a1');
      await removing;
      return true;
    };
    const { status, err } = await skep.run('upgrade a1', { agrees });
    expect({ status, err }).toMatchObject({ status: 1, err: expect.stringContaining('"a1" not found') });
    expect(await skep.output('list --all --format json')).toBe('[]\n');
  });

  test('goes on past one that fails, and says which', async () => {
    await ran();
    const { status, out, err } = await skep.run('upgrade missing a1 --yes');
    expect(status).toBe(1);
    expect(out).toContain('a1 runs npx://fake@2.0.0');
    expect(err).toContain('workload "missing" not found');
  });
});

describe('skep upgrade --undo', () => {
  test('goes back one step, and forward again', async () => {
    await ran();
    await skep.output('upgrade a1 --yes');
    expect(await skep.output('upgrade --undo a1')).toBe(
      'a1 is back at npx://fake@1.0.0, with the data it has now\n',
    );
    expect([await runs(), (await shown()).package]).toEqual(['fake@1.0.0', 'npx://fake@1.0.0']);
    await skep.output('upgrade --undo a1');
    expect(await runs()).toBe('fake@2.0.0');
  });

  test('leaves it in the group where it is by now', async () => {
    await skep.output('group create work');
    await skep.output('run npx://fake@1.0.0 --name a1 --group work');
    await skep.output('upgrade a1 --yes');
    await skep.output('group rm work --yes');
    await skep.output('upgrade --undo a1');
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ group: 'default' });
  });

  test('is refused where there is nothing to go back to', async () => {
    await ran();
    const { status, err } = await skep.run('upgrade --undo a1');
    expect({ status, err }).toEqual({
      status: 1,
      err: 'Error: no earlier version of "a1" is kept; only the last upgrade of a workload can be undone\n',
    });
  });

  test('what was before goes with the workload, and so does its package', async () => {
    await ran();
    await skep.output('upgrade a1 --yes');
    await skep.output('rm a1');
    expect(runtime.discarded.toSorted()).toEqual(['fake@1.0.0', 'fake@2.0.0']);
    await ran();
    expect((await skep.run('upgrade --undo a1')).err).toContain('no earlier version');
  });
});

describe('a server of a catalogue', () => {
  const entry = (version: string, permissions: object, env: readonly object[] = []): object => ({
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name: 'com.example/fake',
    description: 'x',
    version,
    packages: [
      {
        registryType: 'npm',
        identifier: 'fake',
        version,
        transport: { type: 'stdio' },
        environmentVariables: env,
      },
    ],
    _meta: {
      'io.modelcontextprotocol.registry/publisher-provided': {
        'io.github.stacklok': { fake: { permissions } },
      },
    },
  });
  const catalogue = (...servers: readonly object[]): object => ({
    version: '1.0.0',
    meta: { last_updated: '2026-01-01T00:00:00Z' },
    data: { servers },
  });
  const closed = { network: { outbound: {} } };

  async function publish(document: object): Promise<void> {
    await skep.write('../catalogue.json', document);
  }
  beforeEach(async () => {
    skep = await commandUnderTest({ runtime, tools, catalogue: catalogue(entry('1.0.0', closed)) });
    await skep.output('run com.example/fake --name a1');
  });

  test('becomes what its entry names now, not what is newest', async () => {
    expect(await skep.output('upgrade a1')).toContain('a1 is up to date');
    await publish(catalogue(entry('2.0.0', closed)));
    expect(await skep.output('upgrade a1 --yes')).toContain('a1: npx://fake@1.0.0 → npx://fake@2.0.0\n');
  });

  test('gets no host that its entry wishes by now where it is isolated, and is said to', async () => {
    const listing = (...allow_host: string[]) => ({
      network: { outbound: { allow_host, allow_port: [443] } },
    });
    await publish(catalogue(entry('1.0.0', listing('a.example'))));
    await skep.output('run com.example/fake --name b1 --isolate-network');
    const before = runtime.specOf('b1')?.isolation;
    await publish(catalogue(entry('2.0.0', listing('a.example', 'b.example', '10.0.0.5'))));
    expect(await skep.output('upgrade b1 --yes')).toMatch(
      /Network: its entry says a\.example:443, b\.example:443, 10\.0\.0\.5:443.*; it has a\.example:443;/,
    );
    expect(before).toMatchObject({ hosts: ['a.example'], ports: [443] });
    expect(runtime.specOf('b1')?.isolation).toEqual(before);
  });

  test('gets no right that its entry wishes by now, and is said to', async () => {
    const open = { read: ['/etc/passwd'], network: { outbound: { insecure_allow_all: true } } };
    await publish(catalogue(entry('2.0.0', open)));
    const before = await skep.output('status a1 --format json');
    const said = await skep.output('upgrade a1 --yes');
    expect(said).toContain('  Network: its entry says any host; it has none\n');
    expect(said).toContain('  Reads: its entry says /etc/passwd; it has no files of this machine\n');
    const after = await skep.output('status a1 --format json');
    const rights = (text: string): unknown => (JSON.parse(text) as { permissions: unknown }).permissions;
    expect(rights(after)).toEqual(rights(before));
  });

  test('that needs a variable by now asks for it, or is refused', async () => {
    await publish(catalogue(entry('2.0.0', closed, [{ name: 'KEY', isRequired: true, isSecret: true }])));
    const refused = await skep.run('upgrade a1 --yes');
    expect(refused).toMatchObject({ status: 1, err: expect.stringContaining('KEY') });
    expect(await runs()).toBe('fake@1.0.0');
    await skep.output('upgrade a1 --yes', { answers: { KEY: 'hush' } });
    expect(await runs()).toBe('fake@2.0.0');
    expect(await skep.output('export a1 -')).not.toContain('hush');
  });

  describe('with secrets', () => {
    const token = { name: 'KEY', isRequired: true, isSecret: true };
    const key = { answers: { KEY: 'hush' }, agrees: true };
    const system = (): Promise<string> => skep.output('secret list --system');
    const stored = '__skep_workloads_a1/KEY';
    const savedText = (): Promise<string> => readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8');

    async function secretive(env: Readonly<Record<string, string>> = { SKEP_SECRETS_PROVIDER: 'keyring' }) {
      runtime = new MemoryRuntime(PROGRAMS);
      skep = await commandUnderTest({
        runtime,
        catalogue: catalogue(entry('1.0.0', closed)),
        env,
        keyrings: [new MemoryKeyring({ maxChars: 1_000_000 })],
      });
    }

    test('keeps what was asked for where secrets are, until the workload goes', async () => {
      await secretive();
      await skep.output('run com.example/fake --name a1');
      await publish(catalogue(entry('2.0.0', closed, [token])));
      await skep.output('upgrade a1', key);
      expect(runtime.environments.get('a1')).toMatchObject({ KEY: 'hush' });
      expect(await savedText()).not.toContain('hush');
      expect(await system()).toContain(stored);
      await skep.output('upgrade --undo a1');
      await skep.output('rm a1');
      expect(await system()).toBe('No secrets found\n');
    });

    test('asks for none that it has, and keeps none of a version that was taken back', async () => {
      await secretive();
      await skep.output('secret set mine', { input: 'hush' });
      await skep.output('run com.example/fake --name a1 --secret mine,target=KEY');
      await publish(catalogue(entry('2.0.0', closed, [token])));
      await skep.output('upgrade a1 --yes');
      expect(await runs()).toBe('fake@2.0.0');
      await publish(catalogue(entry('6.6.6', closed, [token, { ...token, name: 'MORE' }])));
      expect(await skep.run('upgrade a1 --yes', { answers: { MORE: 'x' } })).toMatchObject({ status: 1 });
      expect(await runs()).toBe('fake@2.0.0');
      expect(await system()).toBe('No secrets found\n');
    });

    test('needs no more than the password that the command was given', async () => {
      await secretive({ SKEP_SECRETS_PROVIDER: 'encrypted' });
      const env = { SKEP_SECRETS_PASSWORD: 'open' };
      await skep.output('secret set mine', { input: 'hush', env });
      await skep.output('run com.example/fake --name a1 --secret mine,target=KEY', { env });
      await publish(catalogue(entry('2.0.0', closed)));
      expect(await skep.run('upgrade a1 --yes')).toMatchObject({ status: 1 });
      expect(await shown()).toMatchObject({ package: 'npx://fake@1.0.0', status: 'running' });
      await skep.output('upgrade a1 --yes', { env });
      expect(await runs()).toBe('fake@2.0.0');
      const broken = await skep.run('upgrade a1 --to 6.6.6 --yes', { env });
      expect(broken.err).toContain('a1 runs npx://fake@2.0.0 again');
    });
  });

  test('that is gone from the catalogue, or is something else by now, is left alone', async () => {
    await publish(catalogue({ ...entry('1.0.0', closed), name: 'com.example/other' }));
    expect((await skep.run('upgrade a1 --yes')).err).toContain('not in the catalogue any more');
    const { packages: _, ...rest } = entry('2.0.0', closed) as { packages: unknown };
    await publish(
      catalogue({ ...rest, remotes: [{ type: 'streamable-http', url: 'https://x.example/mcp' }] }),
    );
    expect((await skep.run('upgrade a1 --yes')).err).toContain('does not come as a package of npm any more');
    expect(await runs()).toBe('fake@1.0.0');
  });
});

test('what changes keeps its indentation on a terminal that is too narrow for it', async () => {
  await ran();
  tools.push(...Array.from({ length: 9 }, (_, at) => ({ name: `another_tool_${at}` })));
  const out = await skep.output('upgrade a1 --yes', { terminal: { liveOut: true, width: 60 } });
  const changes = out.split('\n').filter((line) => line.includes('another_tool'));
  expect(changes.length).toBeGreaterThan(1);
  for (const line of changes) expect(line).toMatch(/^ {2}\S.{0,57}$/);
});

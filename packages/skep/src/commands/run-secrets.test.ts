import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  NOTHING_LEFT,
  type CommandUnderTest,
  type MachineUnderTest,
} from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

const PROGRAMS = { 'fake:1': idle, fake: idle };
const VALUE = 'hunter2-the-value';

/** A server of the catalogue that wants one secret, and one that wants none of it. */
const CATALOGUE = {
  servers: {
    wants: {
      image: 'fake:1',
      transport: 'stdio',
      description: 'Wants a token',
      env_vars: [{ name: 'API_TOKEN', description: 'A token', required: true, secret: true }],
    },
  },
};

/** Derives no key from a password, which takes a quarter of a second. */
const KEYRING = { SKEP_SECRETS_PROVIDER: 'keyring' };
const ENCRYPTED = { env: {} };

async function machine(given: MachineUnderTest = {}) {
  const keyring = new MemoryKeyring({ maxChars: 1_000_000 });
  const runtime = new MemoryRuntime(PROGRAMS);
  const skep = await commandUnderTest({
    runtime,
    keyrings: [keyring],
    catalogue: CATALOGUE,
    env: KEYRING,
    ...given,
  });
  return { skep, keyring, runtime };
}

const savedText = (skep: CommandUnderTest, name: string): Promise<string> =>
  readFile(join(skep.places.runConfigsDir, `${name}.json`), 'utf8');

const RUN = 'run fake:1 --name a1 --transport stdio';

test('a secret variable whose name is too long for the store is kept in clear, and the workload is usable', async () => {
  const long = 'A'.repeat(300);
  const env_vars = [{ name: long, description: 'A token', required: true, secret: true }];
  const wants = { ...CATALOGUE.servers.wants, env_vars };
  const { skep } = await machine({ catalogue: { servers: { wants } } });
  const { status, err } = await skep.run(`run wants --name a1 -e ${long}=${VALUE}`);
  expect({ status, err }).toMatchObject({ status: 0, err: expect.stringContaining('cannot be longer') });
  await skep.output('stop a1');
  await skep.output('start a1');
});

describe('--secret', () => {
  test('gives the server the value, and no file has it', async () => {
    const { skep, runtime } = await machine(ENCRYPTED);
    await skep.output('secret set github', { input: VALUE });
    const { err } = await skep.run(`${RUN} --secret github,target=GITHUB_TOKEN`);
    expect(runtime.environments.get('a1')).toMatchObject({ GITHUB_TOKEN: VALUE });
    const text = await savedText(skep, 'a1');
    expect(JSON.parse(text)).toMatchObject({ secrets: ['github,target=GITHUB_TOKEN'] });
    for (const one of [text, err, await skep.output('status a1'), await skep.output('list --format json')]) {
      expect(one).not.toContain(VALUE);
    }
    expect(err).toContain('GITHUB_TOKEN');
  });
  test('takes the value of the moment at every start', async () => {
    const { skep, runtime } = await machine();
    await skep.output('secret set github', { input: VALUE });
    await skep.output(`${RUN} --secret github,target=X`);
    const { err } = await skep.run('secret set github', { input: 'another' });
    expect(err).toBe('Warning: a1 uses it and gets the new value when restarted: skep restart a1\n');
    await skep.output('stop a1');
    await skep.output('start a1');
    expect(runtime.environments.get('a1')).toMatchObject({ X: 'another' });
    await skep.output('stop a1');
    await skep.output('secret delete github');
    expect(await skep.refusal('start a1')).toContain(
      'secret not found: "github"; store it with skep secret set github',
    );
  });
  test('is stronger than a variable, and weaker than what Skep decides', async () => {
    const { skep, runtime } = await machine();
    await skep.output('secret set s', { input: VALUE });
    await skep.output(`${RUN} -e X=plain --secret s,target=X --secret s,target=MCP_TRANSPORT`);
    expect(runtime.environments.get('a1')).toMatchObject({ X: VALUE, MCP_TRANSPORT: 'stdio' });
  });
  test.each([
    ['--secret missing,target=X', 'secret not found: "missing"'],
    ['--secret one,target=X --secret two,target=Y', 'secrets not found: "one", "two"'],
    ['--secret nonsense', 'invalid secret parameter format: "nonsense"; write NAME,target=VARIABLE'],
    ['--secret __skep_workloads_b/X,target=X', 'is reserved for system use'],
    ['--secret a,target=X --secret b,target=X', 'two secrets are to be the environment variable X'],
    ['--secret large,target=X', 'the secret "large" is too long for the environment variable X'],
  ])('%s is refused before anything is made: %s', async (flags, why) => {
    const { skep, runtime } = await machine();
    await skep.output('secret set large', { input: 'x'.repeat(128 * 1024) });
    expect(await skep.refusal(`${RUN} ${flags}`)).toContain(why);
    expect(runtime.startsOf('a1')).toBe(0);
  });
  test('of a store that is locked, turned off or not there is refused with a line', async () => {
    const { skep, keyring } = await machine(ENCRYPTED);
    const run = `${RUN} --secret github,target=X`;
    expect(await skep.refusal(run)).toContain('secrets provider not configured; choose where');
    await skep.output('secret set github', { input: VALUE });
    keyring.isLocked = true;
    expect(await skep.refusal(run)).toContain('the secrets store is locked: the test keyring is locked');
    await skep.output('secret provider none');
    expect(await skep.refusal(run)).toContain('secrets are turned off');
  });
  test('is given again when the server has crashed, though the keyring is locked by then', async () => {
    const { skep, keyring, runtime } = await machine();
    await skep.output('secret set github', { input: VALUE });
    await skep.output(`${RUN} --secret github,target=X`);
    keyring.isLocked = true;
    runtime.environments.clear();
    runtime.end('a1', 1);
    await expect.poll(() => runtime.environments.get('a1'), { timeout: 9_000 }).toMatchObject({ X: VALUE });
  });
  test('is explained without being looked up', async () => {
    const { skep } = await machine();
    const text = await skep.output(`${RUN} --explain --secret github,target=X`);
    expect(text).toContain('github,target=X');
  });
});

describe('a variable of an entry', () => {
  const OWNED = '__skep_workloads_wants/A';
  test.each<readonly [said: object, line: string, answer: string | undefined, saved: object]>([
    [{}, '', undefined, { env_vars: {}, secrets: [] }],
    [{ default: 'd' }, '', undefined, { env_vars: { A: 'd' }, secrets: [] }],
    [{ default: 'd' }, '-e A=x', undefined, { env_vars: { A: 'x' }, secrets: [] }],
    [{ required: true }, '', 'y', { env_vars: { A: 'y' }, secrets: [] }],
    [{ required: true }, '-e A=x', undefined, { env_vars: { A: 'x' }, secrets: [] }],
    [{ required: true, default: 'd' }, '', undefined, { env_vars: { A: 'd' }, secrets: [] }],
    [{ secret: true }, '', undefined, { env_vars: {}, secrets: [] }],
    [{ secret: true, default: 'd' }, '', undefined, { env_vars: {}, secrets: [`${OWNED},target=A`] }],
    [{ secret: true }, '-e A=x', undefined, { env_vars: {}, secrets: [`${OWNED},target=A`] }],
    [{ secret: true, required: true }, '', 'y', { env_vars: {}, secrets: [`${OWNED},target=A`] }],
    // One that the person stored under the name of the variable is not given unasked (decision 0241).
    [
      { secret: true, required: true },
      '--secret A,target=A',
      undefined,
      { env_vars: {}, secrets: ['A,target=A'] },
    ],
  ])('of which it says %j, with %j and the answer %j', async (said, line, answer, saved) => {
    const wants = { ...CATALOGUE.servers.wants, env_vars: [{ name: 'A', description: 'x', ...said }] };
    const { skep, runtime } = await machine({ catalogue: { servers: { wants } } });
    await skep.output('secret set A', { input: 'stored' });
    await skep.output(`run wants ${line}`, { answers: answer === undefined ? {} : { A: answer } });
    expect(skep.asked).toEqual(answer === undefined ? [] : ['A']);
    expect({ secrets: [], ...JSON.parse(await savedText(skep, 'wants')) }).toMatchObject(saved);
    const given =
      /-e A=(.*)/.exec(line)?.[1] ?? (line === '' ? (answer ?? Reflect.get(said, 'default')) : 'stored');
    expect(runtime.environments.get('wants')?.['A']).toBe(given);
  });
});

describe('a value that the catalogue calls secret', () => {
  test('goes to the store, belongs to the workload, and goes with it', async () => {
    const { skep, runtime } = await machine(ENCRYPTED);
    await skep.output(['run', 'wants', '-e', `API_TOKEN=${VALUE}`]);
    expect(runtime.environments.get('wants')).toMatchObject({ API_TOKEN: VALUE });
    expect(await savedText(skep, 'wants')).not.toContain(VALUE);
    const owned = '__skep_workloads_wants/API_TOKEN';
    expect(JSON.parse(await savedText(skep, 'wants'))).toMatchObject({
      secrets: [`${owned},target=API_TOKEN`],
      secret_env: [],
    });
    expect(await skep.output('secret list')).toBe('No secrets found\n');
    expect(await skep.output('secret list --system')).toBe(`Available secrets:\n  - ${owned}\n`);
    await skep.output('stop wants');
    await skep.output('start wants');
    expect(runtime.environments.get('wants')).toMatchObject({ API_TOKEN: VALUE });
    await skep.output('rm wants');
    expect(await skep.output('secret list --system')).toBe('No secrets found\n');
  });
  test('is not asked for where a secret of the person is given for it', async () => {
    const { skep, runtime } = await machine();
    await skep.output('secret set mine', { input: VALUE });
    await skep.output('run wants --secret mine,target=API_TOKEN', { answers: {} });
    expect(skep.asked).toEqual([]);
    expect(runtime.environments.get('wants')).toMatchObject({ API_TOKEN: VALUE });
    await skep.output('rm wants');
    expect(await skep.output('secret get mine')).toBe(`${VALUE}\n`);
  });
  test('is asked for once, unseen, and kept in the store', async () => {
    const { skep } = await machine();
    await skep.output('run wants', { answers: { API_TOKEN: VALUE } });
    expect(skep.asked).toEqual(['API_TOKEN']);
    expect(await savedText(skep, 'wants')).not.toContain(VALUE);
  });
  test('is not left behind by a start that failed', async () => {
    const { skep, runtime } = await machine({ greet: () => new Promise(() => {}) });
    runtime.crash = { exitCode: 1, says: 'no\n' };
    const { status } = await skep.run(['run', 'wants', '-e', `API_TOKEN=${VALUE}`]);
    expect(status).toBe(1);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await skep.output('secret list --system')).toBe('No secrets found\n');
  });
  test('stays in clear, with a word about it, where there is no place for it', async () => {
    const { skep, keyring } = await machine(ENCRYPTED);
    keyring.isLocked = true;
    const { err } = await skep.run(['run', 'wants', '-e', `API_TOKEN=${VALUE}`]);
    expect(err).toContain(
      'Warning: wants: API_TOKEN is kept in clear in its run configuration: no secrets store is set up (skep secret setup)\n',
    );
    expect(err).not.toContain(VALUE);
  });
  test('is in no export; an import asks for it', async () => {
    const { skep, runtime } = await machine();
    await skep.output(['run', 'wants', '-e', `API_TOKEN=${VALUE}`]);
    const path = join(skep.cwd, 'wants.json');
    await skep.output(`export wants ${path}`);
    const text = await skep.read(path);
    expect(text).not.toContain(VALUE);
    expect(JSON.parse(text)).toMatchObject({ secret_env: ['API_TOKEN'] });
    await skep.output('rm wants');
    expect(await skep.refusal(`run --from-config ${path}`)).toContain(
      'missing required environment variable: API_TOKEN',
    );
    await skep.output(`run --from-config ${path}`, { env: { SKEP_SECRET_API_TOKEN: VALUE } });
    expect(runtime.environments.get('wants')).toMatchObject({ API_TOKEN: VALUE });
    expect(await savedText(skep, 'wants')).not.toContain(VALUE);
  });
});

test('an imported file gets nothing unasked of what a person keeps in variables', async () => {
  const { skep, runtime } = await machine({ env: { SKEP_SECRETS_PROVIDER: 'environment' } });
  const file = {
    schema_version: 'v0.1.0',
    name: 'a1',
    image: 'fake:1',
    transport: 'stdio',
    secret_env: ['B'],
  };
  await skep.write('x.json', file);
  const env = { SKEP_SECRET_B: VALUE };
  expect(await skep.refusal('run --from-config x.json', { env })).toContain(
    'give the server the secret "B" as B',
  );
  await skep.output('run --from-config x.json --trust-config', { env });
  expect(runtime.environments.get('a1')).toMatchObject({ B: VALUE });
});

describe('an imported file that names a secret', () => {
  const file = (secrets: readonly string[]) => ({
    schema_version: 'v0.1.0',
    name: 'a1',
    image: 'fake:1',
    transport: 'stdio',
    permission_profile: { network: { mode: 'none' } },
    secrets,
  });
  test('is given it only where the person agrees', async () => {
    const { skep, runtime } = await machine();
    await skep.output('secret set github', { input: VALUE });
    await skep.write('f.json', file(['github,target=X']));
    expect(await skep.refusal('run --from-config f.json')).toContain(
      'give the server the secret "github" as X',
    );
    await skep.output('run --from-config f.json --trust-config');
    expect(runtime.environments.get('a1')).toMatchObject({ X: VALUE });
  });
  test('gets nothing of what belongs to another workload', async () => {
    const { skep } = await machine();
    await skep.output(['run', 'wants', '-e', `API_TOKEN=${VALUE}`]);
    await skep.write('f.json', file(['__skep_workloads_wants/API_TOKEN,target=X']));
    expect(await skep.refusal('run --from-config f.json --trust-config')).toContain(
      'is reserved for system use',
    );
  });
});

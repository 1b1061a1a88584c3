import { chmod, readFile, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, controlsIn, type MachineUnderTest } from '../command-under-test.fixture.ts';
import { saveRunConfig } from '../run-config/file.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';

/** A server whose token belongs to its workload. */
const CATALOGUE = {
  servers: {
    wants: {
      image: 'fake:1',
      transport: 'stdio',
      description: 'Wants a token',
      env_vars: [{ name: 'TOKEN', description: 'A token', required: true, secret: true }],
    },
  },
};

async function machine(given: MachineUnderTest = {}) {
  const keyring = new MemoryKeyring();
  const skep = await commandUnderTest({ keyrings: [keyring], supervisor: 'none', ...given });
  return { skep, keyring };
}

/** Derives no key from a password, which takes a quarter of a second. */
const quick = { env: { SKEP_SECRETS_PROVIDER: 'keyring' } };
const withPassword = { env: { SKEP_SECRETS_PASSWORD: 'correct horse' }, keyrings: [] };

describe('the first secret', () => {
  test('sets up the encrypted store by itself where a keyring keeps its password', async () => {
    const { skep, keyring } = await machine();
    expect(await skep.output('secret set github', { input: 'hunter2\n' })).toBe(
      'Secret github is stored (encrypted)\n',
    );
    expect(await skep.output('secret provider')).toBe('encrypted\n');
    expect(await skep.output('secret get github')).toBe('hunter2\n');
    expect([...keyring.held.keys()]).toEqual([skep.places.secretsFile]);
    expect((await stat(skep.places.secretsFile)).mode & 0o777).toBe(0o600);
    expect(await readFile(skep.places.secretsFile, 'latin1')).not.toContain('hunter2');
    expect(await readFile(skep.places.configFile, 'utf8')).toBe('secrets:\n  provider_type: encrypted\n');
  });
  test('is refused with the ways to go on where there is no place for it', async () => {
    const { skep } = await machine({ keyrings: [new MemoryKeyring({ lasts: false })] });
    const err = await skep.refusal('secret set github', { input: 'x' });
    expect(err).toContain('secrets provider not configured');
    expect(err).toContain('skep secret setup');
  });
  test('needs no keyring where a password is given', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set github', { input: 'hunter2' });
    expect(await skep.output('secret get github')).toBe('hunter2\n');
  });
  test('or its file', async () => {
    const { skep } = await machine({ keyrings: [] });
    const env = { SKEP_SECRETS_PASSWORD_FILE: await skep.write('password', 'correct horse\n') };
    await skep.output('secret set github', { input: 'hunter2', env });
    expect(await skep.output('secret get github', { env: { SKEP_SECRETS_PASSWORD: 'correct horse' } })).toBe(
      'hunter2\n',
    );
    expect(
      await skep.refusal('secret get github', {
        env: { SKEP_SECRETS_PASSWORD_FILE: join(skep.cwd, 'none') },
      }),
    ).toContain('password file of SKEP_SECRETS_PASSWORD_FILE');
  });
});

describe('a value', () => {
  test('is asked for, unseen, where nothing is piped', async () => {
    const { skep } = await machine();
    await skep.output('secret set github', { answers: { 'Value of github': 'typed' } });
    expect(await skep.output('secret get github')).toBe('typed\n');
  });
  test('loses one line end, and nothing else', async () => {
    const { skep } = await machine(quick);
    for (const [input, expected] of [
      ['a\n\n', 'a\n'],
      [' a ', ' a '],
      ['a\r\n', 'a'],
      ['ü\tb', 'ü\tb'],
    ] as const) {
      await skep.output('secret set x', { input });
      expect(await skep.output('secret get x')).toBe(`${expected}\n`);
    }
  });
  test.each([
    ['', 'secret value of "x" cannot be empty'],
    ['\n', 'secret value of "x" cannot be empty'],
    ['a\0b', 'contains NUL'],
    [Buffer.of(0xff, 0xfe), 'is not UTF-8 text'],
    ['x'.repeat(1024 * 1024 + 1), 'is larger than 1048576 bytes'],
  ])('%# that cannot be one is refused: %s', async (input, why) => {
    const { skep } = await machine(quick);
    expect(await skep.refusal('secret set x', { input })).toContain(why);
    expect(await skep.output('secret list')).toBe('No secrets found\n');
  });
  test('of a mebibyte is kept', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set x', { input: 'y'.repeat(1024 * 1024) });
    expect((await skep.output('secret get x')).length).toBe(1024 * 1024 + 1);
  });
});

test('of the header of a server elsewhere: whoever changes or deletes it is told what uses it', async () => {
  const { skep } = await machine(quick);
  const remote = { image: 'https://x.invalid/', remote_url: 'https://x.invalid/', transport: 'sse' };
  const header_forward = { add_headers_from_secret: { 'X-Key': 'mine' } };
  await saveRunConfig(skep.places, decodeRunConfig({ name: 'a1', ...remote, header_forward }, 'test'));
  const { err } = await skep.run('secret set mine', { input: 'x' });
  expect(err).toContain('a1 uses it and gets the new value when restarted');
  expect((await skep.run('secret delete mine')).err).toContain('a1 cannot be started without it');
});

describe('names', () => {
  test('that could steer a terminal, or mean something to an object, do neither', async () => {
    const { skep } = await machine(quick);
    for (const name of ['__proto__', 'constructor', 'a b', 'ä']) {
      await skep.output(['secret', 'set', name], { input: `value of ${name}` });
    }
    expect(await skep.output(['secret', 'get', '__proto__'])).toBe('value of __proto__\n');
    expect(await skep.output('secret list')).toBe(
      'Available secrets:\n  - __proto__\n  - a b\n  - constructor\n  - ä\n',
    );
    const err = await skep.refusal(['secret', 'set', 'a\u001b[31mb'], { input: 'x' });
    expect(controlsIn(err)).toEqual([]);
  });
  test('of the system are neither taken nor listed', async () => {
    const { skep } = await machine(quick);
    for (const command of ['set', 'get', 'delete']) {
      expect(await skep.refusal(`secret ${command} __skep_x`, { input: 'x' })).toContain(
        'reserved for system use',
      );
    }
    expect(await skep.refusal('secret delete --system x', { input: 'x' })).toContain(
      'is no secret of the system',
    );
  });
  test('of the system go with --system alone, each by its whole name', async () => {
    const { skep } = await machine({ ...quick, supervisor: 'up', catalogue: CATALOGUE });
    await skep.output('run wants -e TOKEN=hunter2');
    const name = '__skep_workloads_wants/TOKEN';
    expect(await skep.output('secret list')).toBe('No secrets found\n');
    expect(await skep.output('secret list --system')).toBe(`Available secrets:\n  - ${name}\n`);
    expect(await skep.refusal(`secret delete ${name}`)).toContain('reserved for system use');
    await skep.output(`secret delete --system ${name}`);
    expect(await skep.output('secret list --system')).toBe('No secrets found\n');
  });
  test('are listed as JSON, without values', async () => {
    const { skep } = await machine(quick);
    await skep.output('secret set b', { input: 'hunter2' });
    expect(JSON.parse(await skep.output('secret list --format json'))).toEqual([
      { name: 'b', description: null },
    ]);
  });
  test('are offered for completion, and nobody is asked for that', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set github', { input: 'hunter2' });
    expect(await skep.output('complete -- secret get g')).toContain('github');
    const locked = { env: { SKEP_SECRETS_PASSWORD: '' }, answers: {} };
    await skep.run('complete -- secret get g', locked);
    expect(skep.asked).toEqual([]);
  });
});

test('a secret that is missing is named, with what to do', async () => {
  const { skep } = await machine(withPassword);
  await skep.output('secret set a', { input: 'x' });
  expect(await skep.refusal('secret get b')).toContain(
    'secret "b" not found; see the names with skep secret list',
  );
  expect(await skep.refusal('secret delete b')).toContain('secret "b" not found');
  await skep.output('secret delete a');
  expect(await skep.output('secret list')).toBe('No secrets found\n');
});

describe('the password', () => {
  test('is asked for twice where no keyring lasts, and once more only when none holds it', async () => {
    const keyring = new MemoryKeyring({ lasts: false });
    const { skep } = await machine({ keyrings: [keyring] });
    const answers = {
      'Choose a password for the secrets store': 'chosen',
      'The same password again': 'chosen',
      'The password of the secrets store': 'chosen',
      'Value of a': 'hunter2',
    };
    await skep.output('secret provider encrypted', { answers });
    await skep.output('secret set a', { answers });
    expect(skep.asked).toEqual([
      'Choose a password for the secrets store',
      'The same password again',
      'Value of a',
    ]);
    keyring.held.clear();
    expect(await skep.output('secret get a', { answers })).toBe('hunter2\n');
    expect([...keyring.held.values()]).toEqual(['chosen']);
  });
  test('that was mistyped is not kept', async () => {
    const keyring = new MemoryKeyring({ lasts: false });
    const { skep } = await machine({ keyrings: [keyring] });
    const [first, again] = ['Choose a password for the secrets store', 'The same password again'];
    const different = { answers: { [first]: 'a', [again]: 'b' } };
    expect(await skep.refusal('secret provider encrypted', different)).toContain('the two passwords differ');
    await skep.output('secret provider encrypted', { answers: { [first]: 'a', [again]: 'a' } });
    keyring.held.clear();
    const wrong = { answers: { 'The password of the secrets store': 'x' } };
    expect(await skep.refusal('secret list', wrong)).toContain('the password does not open the secrets in');
    expect(keyring.held.size).toBe(0);
  });
  test('in a keyring that is locked leads to one line with the ways to go on', async () => {
    const { skep, keyring } = await machine();
    await skep.output('secret set a', { input: 'x' });
    keyring.isLocked = true;
    const err = await skep.refusal('secret get a');
    expect(err).toBe(
      'Error: the secrets store is locked: the test keyring is locked; unlock the keyring of your session, or name a file with the password in SKEP_SECRETS_PASSWORD_FILE\n',
    );
  });
  test('is forgotten only by somebody who means it', async () => {
    const { skep, keyring } = await machine();
    await skep.output('secret set a', { input: 'x' });
    expect(await skep.refusal('secret reset-keyring')).toContain('add --yes');
    expect(await skep.refusal('secret reset-keyring', { agrees: false })).toContain('is not forgotten');
    expect(keyring.held.size).toBe(1);
    expect(await skep.output('secret reset-keyring --yes')).toBe(
      'The password is forgotten in the test keyring\n',
    );
    expect(await skep.output('secret reset-keyring --yes')).toBe('No keyring holds a password\n');
    expect(await skep.refusal('secret get a')).toContain('the test keyring holds no password for it');
  });
});

describe('a store', () => {
  test('that was tampered with is not taken for one with another password', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set a', { input: 'x' });
    const bytes = await readFile(skep.places.secretsFile);
    bytes[bytes.length - 1] = (bytes.at(-1) ?? 0) ^ 1;
    await writeFile(skep.places.secretsFile, bytes);
    expect(await skep.refusal('secret get a')).toContain('is damaged, or somebody has changed it');
    const other = { env: { SKEP_SECRETS_PASSWORD: 'wrong' } };
    expect(await skep.refusal('secret get a', other)).toContain('the password does not open the secrets in');
    expect(await readFile(skep.places.secretsFile)).toEqual(bytes);
  });
  test('that is empty holds no secrets', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set a', { input: 'x' });
    await writeFile(skep.places.secretsFile, '');
    expect(await skep.output('secret list')).toBe('No secrets found\n');
  });
  test.each([
    ['encrypted', withPassword, ['a', 'b']],
    ['in the keyring', quick, ['a', 'b', 'c', 'd', 'e']],
  ])('that several commands write at once loses none of it: %s', async (_what, given, names) => {
    const { skep } = await machine(given);
    await Promise.all(names.map((name) => skep.output(`secret set ${name}`, { input: 'x' })));
    expect(await skep.output('secret list')).toBe(
      `Available secrets:\n${names.map((name) => `  - ${name}\n`).join('')}`,
    );
  });
  test('that cannot be written keeps what it held', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set a', { input: 'x' });
    const places = { ...skep.places };
    await writeFile(`${places.dataDir}.blocked`, '');
    await chmod(places.dataDir, 0o500);
    const outcome = await skep.run('secret set b', { input: 'y' });
    await chmod(places.dataDir, 0o700);
    // Root may write wherever it likes.
    if (process.getuid?.() !== 0) expect(outcome.err).toContain('cannot write');
    expect(await skep.output('secret get a')).toBe('x\n');
  });
});

describe('another provider', () => {
  test('keyring keeps secrets in the keyring alone, and says when that is full', async () => {
    const { skep, keyring } = await machine();
    expect(await skep.output('secret provider keyring')).toBe('Secrets provider: keyring\n');
    await skep.output('secret set a', { input: 'hunter2' });
    expect(await skep.output('secret get a')).toBe('hunter2\n');
    expect([...keyring.held.keys()]).toEqual([`secrets:${skep.places.secretsFile}`]);
    expect(await skep.refusal('secret set b', { input: 'x'.repeat(1000) })).toContain(
      'the test keyring takes no more than 750 bytes of secrets; use the encrypted store',
    );
    expect(await skep.output('secret list')).toBe('Available secrets:\n  - a\n');
  });
  test('environment reads variables, needs no setup, and can do nothing else', async () => {
    const { skep } = await machine();
    const env = { SKEP_SECRETS_PROVIDER: 'environment', SKEP_SECRET_a: 'hunter2', SKEP_SECRET_b: '' };
    expect(await skep.output('secret get a', { env })).toBe('hunter2\n');
    expect(await skep.refusal('secret get b', { env })).toContain('secret "b" not found');
    expect(await skep.refusal('secret set a', { env, input: 'x' })).toContain(
      'the environment secrets provider does not support setting secrets (read-only)',
    );
    expect(await skep.refusal('secret delete a', { env })).toContain('does not support deleting secrets');
    expect(await skep.refusal('secret list', { env })).toContain('does not support listing secrets');
  });
  test('of a variable counts before that of the configuration file', async () => {
    const { skep } = await machine();
    await skep.output('secret provider none');
    const env = { SKEP_SECRETS_PROVIDER: 'environment', SKEP_SECRET_a: 'hunter2' };
    expect(await skep.output('secret get a', { env })).toBe('hunter2\n');
    expect(await skep.refusal('secret get a')).toContain('secrets are turned off');
  });
  test('falls back to the environment for what it does not have, unless told not to', async () => {
    const { skep } = await machine(withPassword);
    await skep.output('secret set a', { input: 'stored' });
    const env = { SKEP_SECRET_a: 'other', SKEP_SECRET_b: 'fallback' };
    expect(await skep.output('secret get a', { env })).toBe('stored\n');
    expect(await skep.output('secret get b', { env })).toBe('fallback\n');
    const off = { env: { ...env, SKEP_DISABLE_ENV_FALLBACK: 'true' } };
    expect(await skep.refusal('secret get b', off)).toContain('secret "b" not found');
  });
  test('none refuses every secret with a line', async () => {
    const { skep } = await machine();
    await skep.output('secret provider none');
    for (const command of ['set a', 'get a', 'list', 'delete a']) {
      const err = await skep.refusal(`secret ${command}`, { input: 'x' });
      expect(err).toBe('Error: secrets are turned off; choose where they are kept with skep secret setup\n');
    }
  });
  test('that does not exist is refused with those that do', async () => {
    const { skep } = await machine();
    expect(await skep.refusal('secret provider vault')).toBe(
      'Error: invalid secrets provider type: "vault"; valid types: encrypted, keyring, 1password, environment, none\n',
    );
    const env = { SKEP_SECRETS_PROVIDER: 'vault' };
    expect(await skep.refusal('secret list', { env })).toContain('invalid secrets provider type');
  });
  test('is chosen from a list, and tried before it is chosen', async () => {
    const { skep, keyring } = await machine();
    const { status, err } = await skep.run('secret setup', {
      answers: { 'Where to keep secrets': 'keyring' },
    });
    expect(status).toBe(0);
    expect(err.split('\n').filter((line) => line.length > 80)).toEqual([]);
    expect(await skep.output('secret provider')).toBe('keyring\n');
    keyring.isLocked = true;
    expect(await skep.refusal('secret provider keyring')).toContain(
      'there is no keyring to use: the test keyring is locked',
    );
    expect(await skep.refusal('secret setup')).toContain('skep secret provider encrypted');
  });
});

describe('1Password, with a stand-in for its program', () => {
  const OP = `#!/bin/sh
case "$1 $2" in
"read --no-newline") [ "$3" = op://Work/GitHub/token ] && printf hunter2 || { echo "[ERROR] \\"x\\" isn't an item in the vault" >&2; exit 1; };;
"item list") echo '[{"id":"abc","vault":{"id":"v1"}}]';;
"item get") echo '{"title":"GitHub","vault":{"name":"Work"},"fields":[{"label":"token","reference":"op://Work/GitHub/token","value":"hunter2"}]}';;
esac
`;
  async function withOp(script: string) {
    const { skep } = await machine();
    const program = await skep.write('bin/op', script);
    await chmod(program, 0o700);
    return {
      skep,
      env: { SKEP_SECRETS_PROVIDER: '1password', PATH: `${join(skep.cwd, 'bin')}:/usr/bin:/bin` },
    };
  }
  test('its fields are read and listed', async () => {
    const { skep, env } = await withOp(OP);
    expect(await skep.output('secret get op://Work/GitHub/token', { env })).toBe('hunter2\n');
    expect(await skep.output('secret list', { env })).toBe(
      'Available secrets:\n  - op://Work/GitHub/token (Work :: GitHub :: token)\n',
    );
    expect(await skep.refusal('secret get op://Work/GitHub/other', { env })).toContain('not found');
    expect(await skep.refusal('secret get github', { env })).toContain('write op://VAULT/ITEM/FIELD');
    expect(await skep.refusal('secret set op://Work/GitHub/x', { env, input: 'x' })).toContain('(read-only)');
  });
  test('a sign-in that failed is not taken for a missing secret', async () => {
    const { skep, env } = await withOp('#!/bin/sh\necho "[ERROR] you are not signed in" >&2\nexit 1\n');
    const fallback = { env: { ...env, 'SKEP_SECRET_op://a/b/c': 'x' } };
    expect(await skep.refusal('secret get op://a/b/c', fallback)).toContain(
      '1Password refuses: [ERROR] you are not signed in; sign in with op signin',
    );
  });
  test('a program that is missing is named', async () => {
    const { skep } = await machine();
    const env = { SKEP_SECRETS_PROVIDER: '1password', PATH: skep.cwd };
    expect(await skep.refusal('secret get op://a/b/c', { env })).toContain('"op" is not installed');
  });
});

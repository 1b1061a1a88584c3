import { stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';

const withStore = async () => {
  const skep = await commandUnderTest({
    files: { password: 'long enough\n', logins: '//r.example/:_authToken=hush-hush\n' },
  });
  return { skep, encrypted: { SKEP_SECRETS_PASSWORD_FILE: `${skep.cwd}/password` } };
};

describe('skep build', () => {
  test('hands on what flags and the configuration file say, flags first', async () => {
    const skep = await commandUnderTest();
    await skep.configure(
      'runtime_configs:\n  npx:\n    builder_image: own:1\n    additional_packages: [jq]\n  uvx:\n    builder_image: py:1\n',
    );
    const line = 'build -t team/fake:1 --rebuild --runtime-add-package git npx://fake -- --root /x';
    expect(await skep.run(line)).toMatchObject({
      status: 0,
      out: 'Successfully built container image: team/fake:1\n',
    });
    expect(skep.runtime.prepared).toMatchObject([
      {
        source: { ecosystem: 'npm', name: 'fake' },
        baseImage: 'own:1',
        addPackages: ['git'],
        bakedArgs: ['--root', '/x'],
        tag: 'team/fake:1',
        rebuild: true,
      },
    ]);
  });

  test('prints or writes the Dockerfile, and builds nothing', async () => {
    const skep = await commandUnderTest();
    const text = await skep.output('build --dry-run npx://fake');
    expect(text).toContain('"name":"fake"');
    expect(await skep.run('build -o made npx://fake')).toMatchObject({ status: 0, out: '' });
    expect(await skep.read(`${skep.cwd}/made`)).toBe(text);
    expect((await stat(`${skep.cwd}/made`)).mode & 0o777).toBe(0o600);
    expect(skep.runtime.prepared).toEqual([]);
  });

  test.each([
    ['build fake:1', 'use npx://, uvx:// or go://'],
    ['build', 'missing argument PACKAGE'],
    [['build', 'npx://x;id'], 'invalid package reference "npx://x;id"'],
    [['build', 'uvx://$(id)'], 'invalid package reference'],
    [['build', 'go://x.test/`id`'], 'invalid package reference'],
    [['build', 'uvx://fake', '--build-with', 'a; id'], 'invalid requirement "a; id"'],
    ['build --dry-run -t x npx://fake', '--tag'],
  ])('%j is refused, and nothing is built', async (line, said) => {
    const skep = await commandUnderTest();
    expect(await skep.refusal(line)).toContain(said);
    expect(skep.runtime.prepared).toEqual([]);
  });

  test('needs an engine', async () => {
    const skep = await commandUnderTest({ runtime: new MemoryRuntime({}, 'sandbox') });
    expect(await skep.refusal('build npx://fake')).toContain('the sandbox builds no images');
  });
});

describe('skep prune', () => {
  test('keeps what servers run from, and what they can go back to', async () => {
    const skep = await commandUnderTest();
    await skep.output('run npx://fake');
    await skep.output('prune');
    expect(skep.runtime.swept.at(-1)).toEqual(['fake']);
  });

  test('looks in the sandbox too where an engine is used, and so does rm --all', async () => {
    const sandbox = new MemoryRuntime({ fake: idle }, 'sandbox');
    const skep = await commandUnderTest({ sandbox });
    await skep.output('run npx://fake --runtime sandbox --name a1');
    await skep.output('prune');
    expect(sandbox.swept).toEqual([['fake']]);
    await skep.output('rm --all');
    expect(sandbox.swept).toEqual([['fake'], []]);
  });
});

describe('what builds are given', () => {
  test('is set, shown without what signs in, and taken away', async () => {
    const skep = await commandUnderTest();
    await skep.output('config set-build-env NPM_CONFIG_REGISTRY https://me:hunter2@r.example/');
    await skep.output('config set-build-env --from-secret mine NPM_TOKEN');
    await skep.output('config set-build-env --from-env GOPROXY');
    const shown = await skep.output('config get-build-env');
    expect(shown).toContain('https://[redacted]@r.example/');
    expect(shown).toMatch(/NPM_TOKEN +secret mine/);
    expect(shown).toMatch(/GOPROXY +environment of the command/);
    expect(shown + (await skep.output('config list'))).not.toContain('hunter2');
    // A variable has one source.
    await skep.output('config set-build-env NPM_TOKEN plain-value');
    expect(await skep.output('config get-build-env NPM_TOKEN')).not.toContain('mine');
    await skep.output('config unset-build-env GOPROXY');
    expect(await skep.output('config get-build-env GOPROXY')).toBe('no variable GOPROXY is set for builds\n');
    await skep.output('config unset-build-env --all');
    expect(await skep.output('config get-build-env')).toBe('no variable is set for builds\n');
  });

  test('reaches the build with every source, the shell over secrets over literals', async () => {
    const { skep, encrypted } = await withStore();
    const env = { ...encrypted, SHELL_TOKEN: 'from-the-shell' };
    await skep.run('secret set mine', { env, input: 'a-secret-value' });
    await skep.output('config set-build-env A_TOKEN literal');
    await skep.output('config set-build-env B_TOKEN --from-secret mine');
    await skep.output('config set-build-env SHELL_TOKEN --from-env');
    await skep.output('config set-build-auth-file npmrc logins', { env });
    await skep.output('build npx://fake', { env });
    const [request] = skep.runtime.prepared;
    const identity = request?.access?.identity ?? '';
    expect(identity).toContain('literal');
    expect(identity).not.toMatch(/a-secret-value|from-the-shell|hush/);
    expect(await request?.access?.reveal()).toEqual({
      env: { A_TOKEN: 'literal', B_TOKEN: 'a-secret-value', SHELL_TOKEN: 'from-the-shell' },
      files: { npmrc: '//r.example/:_authToken=hush-hush\n' },
      hidden: ['literal', 'a-secret-value', 'from-the-shell', 'hush-hush'],
    });
    expect(await skep.read(skep.places.configFile)).not.toMatch(/a-secret-value|hush/);
    await skep.output('config unset-build-auth-file npmrc', { env });
    expect(await skep.output('config get-build-auth-file')).toBe('no login file is stored for builds\n');
  });

  test.each<readonly [given: { A: string; secret?: boolean; shell?: boolean }, value: string]>([
    [{ A: 'literal' }, 'literal'],
    [{ A: 'literal', secret: true }, 'from-the-secret'],
    [{ A: 'literal', secret: true, shell: true }, 'from-the-shell'],
    [{ A: 'literal', shell: true }, 'from-the-shell'],
  ])('is of one variable what the strongest of its sources says: %j', async ({ A, secret, shell }, value) => {
    const skep = await commandUnderTest();
    await skep.configure(
      [
        `build_env: {A: ${A}}\nsecrets: {provider_type: environment}\n`,
        ...(secret === true ? ['build_env_from_secrets: {A: mine}\n'] : []),
        ...(shell === true ? ['build_env_from_shell: [A]\n'] : []),
      ].join(''),
    );
    await skep.output('build npx://fake', {
      env: { A: 'from-the-shell', SKEP_SECRET_mine: 'from-the-secret' },
    });
    expect(await skep.runtime.prepared[0]?.access?.reveal()).toMatchObject({ env: { A: value } });
  });

  test('includes variables of its server, which a run may give another value', async () => {
    const skep = await commandUnderTest();
    await skep.configure('runtime_configs:\n  npx:\n    runtime_env: {A_B: from file, C: $x}\n');
    await skep.output('build npx://fake');
    expect(skep.runtime.prepared[0]?.imageEnv).toEqual({ A_B: 'from file', C: '$x' });
    expect(await skep.output('run --explain npx://fake')).toMatch(
      /runtime_env\.A_B +from file +\S+config\.yaml/,
    );
    await skep.output('run npx://fake --name a1 -e C=mine');
    expect(skep.runtime.prepared[1]?.imageEnv).toBeUndefined();
    expect(skep.runtime.specOf('a1')?.env).toMatchObject({ A_B: 'from file', C: 'mine' });
    await skep.output('export a1 out.json');
    await skep.output('rm a1');
    await skep.configure('');
    await skep.output('run --from-config out.json');
    expect(skep.runtime.specOf('a1')?.env).toMatchObject({ A_B: 'from file', C: 'mine' });
    // It belongs to packages.
    await skep.configure('runtime_configs:\n  npx:\n    runtime_env: {A_B: from file}\n');
    await skep.output('run fake:1 --name a2');
    expect(skep.runtime.specOf('a2')?.env).not.toHaveProperty('A_B');
  });

  test.each([
    [['config', 'set-build-env', 'PATH', '/x'], 'builds set "PATH" themselves'],
    [['config', 'set-build-env', 'LD_PRELOAD', '/x'], 'builds set "LD_PRELOAD" themselves'],
    [['config', 'set-build-env', 'A B', 'x'], '"A B" is no name of a variable of builds'],
    [['config', 'set-build-env', 'X\nRUN', 'x'], 'is no name of a variable of builds'],
    [['config', 'set-build-env', 'TOKEN', 'a\nRUN id'], 'has a line break'],
    [['config', 'set-build-env', 'TOKEN'], 'give exactly one of VALUE, --from-secret and --from-env'],
    [['config', 'set-build-env', 'TOKEN', 'x', '--from-env'], 'give exactly one of'],
    [['config', 'unset-build-env'], 'give a NAME or --all'],
    [['config', 'set-build-auth-file', 'yarnrc', 'x'], '"yarnrc" is no login file that a build can use'],
    [['config', 'set-build-auth-file', 'npmrc', 'absent'], 'does not exist'],
  ])('%j is refused', async (line, said) => {
    const skep = await commandUnderTest();
    expect(await skep.refusal(line)).toContain(said);
  });

  test.each([
    ['build_env:\n  PATH: /x\n', 'builds set "PATH" themselves'],
    ['build_env_from_secrets:\n  "X Y": mine\n', '"X Y" is no name'],
    ['build_auth_files:\n  "npmrc\\nRUN": x\n', 'is no login file'],
    [
      'runtime_configs:\n  npx:\n    image: x\n',
      'runtime_configs of the configuration file: "npx.image" is no part of it',
    ],
    [
      'runtime_configs:\n  npx:\n    runtime_env: [X]\n',
      '"npx.runtime_env" must be a mapping of names to values',
    ],
    [
      'runtime_configs:\n  npx:\n    runtime_env: {PATH: /x}\n',
      '"npx.runtime_env.PATH" is not a variable name',
    ],
    ['runtime_configs:\n  npx:\n    runtime_env: {X: "$(id)"}\n', '"npx.runtime_env.X" has a character'],
    ['runtime_configs:\n  npx:\n    builder_image: "a b"\n', 'invalid base image "a b"'],
    ['runtime_configs:\n  npx:\n    build_with: [x]\n', '"npx.build_with" is for uvx alone'],
  ])('%j in the configuration file is refused by name', async (config, said) => {
    const skep = await commandUnderTest();
    await skep.configure(config);
    expect(await skep.refusal('run npx://fake')).toContain(said);
  });

  test('a secret that is not there is named with how to store it', async () => {
    const { skep, encrypted } = await withStore();
    await skep.run('secret set other', { env: encrypted, input: 'x' });
    await skep.configure(
      `${await skep.read(skep.places.configFile)}build_env_from_secrets:\n  NPM_TOKEN: mine\n`,
    );
    await skep.run('build npx://fake', { env: encrypted });
    await expect(skep.runtime.prepared[0]?.access?.reveal()).rejects.toMatchObject({
      code: 'secrets/not-found',
      hint: 'store it with skep secret set mine',
    });
  });
});

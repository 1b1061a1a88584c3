import * as fc from 'fast-check';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { describe, expect, test } from 'vitest';
import type { Ask } from '../cli/ask.ts';
import { runSettings } from '../settings/run-settings.ts';
import { mergeEnv, parseEnvFile, readEnvFlags, type EnvInputs, type MergedEnv } from './merge-env.ts';
import { layer } from './settings-of-run.ts';

const requirement = (name: string, more: object = {}) => ({ name, required: false, secret: false, ...more });

interface Said extends EnvInputs {
  readonly file: Readonly<Record<string, string>>;
  readonly flags: Readonly<Record<string, string>>;
  readonly ask?: Ask;
}

/** As a run merges them: what flags, the file and the catalogue say are layers of its settings. */
function merge({ file, flags, requirements, ask }: Said): Promise<MergedEnv> {
  const defaults = requirements
    .map((one) => [one.name, one.default])
    .filter(([, value]) => value !== undefined);
  const settings = mergeSettings(runSettings, [
    layer('flag', '--env', { env: flags }),
    layer('file', 'f', { env: file }),
    layer('registry', 'e', { env: Object.fromEntries(defaults) }),
  ]);
  return mergeEnv(settings, { requirements }, ask);
}

describe('the environment of a server', () => {
  test('a flag beats the file, and both beat the default of the catalogue', async () => {
    const requirements = [
      requirement('A', { default: 'c' }),
      requirement('B', { default: 'c' }),
      requirement('C', { default: 'c' }),
    ];
    const merged = await merge({ file: { A: 'f', B: 'f' }, flags: { A: 'x' }, requirements });
    expect(merged.env).toEqual({ A: 'x', B: 'f', C: 'c' });
  });
  test('a variable of the file is not asked for', async () => {
    const ask = () => Promise.reject(new Error('asked'));
    const merged = await merge({
      file: { A: '1' },
      flags: {},
      requirements: [requirement('A', { required: true })],
      ask,
    });
    expect(merged.env).toEqual({ A: '1' });
  });
  test('all missing variables are named at once where nobody can be asked', async () => {
    const requirements = [requirement('A', { required: true }), requirement('B', { required: true })];
    await expect(merge({ file: {}, flags: {}, requirements })).rejects.toMatchObject({
      code: 'run/missing-env',
      message: 'missing required environment variables: A, B',
    });
  });
  test.each([
    [false, /^give it with -e A=VALUE or --env-file$/],
    [true, /^give it with -e A \(from your environment\) or --env-file; a terminal asks/],
  ])(
    'where it is to be given from is said, and no secret is to stand in a command line (%s)',
    async (secret, hint) => {
      const requirements = [requirement('A', { required: true, secret })];
      await expect(merge({ file: {}, flags: {}, requirements })).rejects.toMatchObject({
        hint: expect.stringMatching(hint) as unknown,
      });
    },
  );
  test('an empty answer is an error, not an unset variable', async () => {
    const requirements = [requirement('A', { required: true })];
    await expect(merge({ file: {}, flags: {}, requirements, ask: async () => '' })).rejects.toMatchObject({
      code: 'run/missing-env',
    });
  });
  test('what is asked for is used, and secrets are remembered as such', async () => {
    const requirements = [
      requirement('TOKEN', { required: true, secret: true }),
      requirement('OTHER', { secret: true }),
    ];
    expect(await merge({ file: {}, flags: {}, requirements, ask: async () => 's3' })).toEqual({
      env: { TOKEN: 's3' },
      secret: ['TOKEN'],
    });
  });
  test('a value that is no choice is refused without showing a secret', async () => {
    const requirements = [requirement('A', { secret: true, choices: ['x', 'y'] })];
    const failing = merge({ file: {}, flags: { A: 'hush' }, requirements });
    await expect(failing).rejects.toMatchObject({ code: 'run/invalid-env' });
    await expect(failing).rejects.not.toThrow('hush');
  });
});

describe('an env file', () => {
  test.each<[string, Record<string, string>]>([
    ['A=1', { A: '1' }],
    ['export A=1', { A: '1' }],
    ['# A=1\n\nB=2\r\n', { B: '2' }],
    ['A=x=y', { A: 'x=y' }],
    ['A=', { A: '' }],
    ['A="with space"', { A: 'with space' }],
    ["A='it'", { A: 'it' }],
    ['A="half', { A: '"half' }],
    ['A="', { A: '"' }],
    ['A=1\nA=2', { A: '2' }],
    ['no equals sign', {}],
    ['A=${B} # not a comment', { A: '${B} # not a comment' }],
    ['\uFEFFA=1', { A: '1' }],
  ])('%j', (text, variables) => {
    expect(parseEnvFile(text, 'f')).toEqual(variables);
  });
  test('an empty key is an error with file and line', () => {
    expect(() => parseEnvFile('A=1\n=x', 'my.env')).toThrow('empty environment variable key in my.env:2');
  });
  test('a key that is no name is an error', () => {
    expect(() => parseEnvFile('A B=1', 'f')).toThrow(expect.objectContaining({ code: 'run/invalid-env' }));
  });
  test('__proto__ is a variable like any other', () => {
    expect(Object.keys(parseEnvFile('__proto__=x', 'f'))).toEqual(['__proto__']);
  });
  test('what was written comes back', () => {
    const key = fc.stringMatching(/^[A-Z_][A-Z0-9_]{0,8}$/);
    const value = fc.stringMatching(/^[a-z0-9=#$-]{0,12}$/);
    fc.assert(
      fc.property(fc.dictionary(key, value), (variables) => {
        const text = Object.entries(variables)
          .map(([k, v]) => `${k}=${v}`)
          .join('\n');
        expect(parseEnvFile(text, 'f')).toEqual({ ...variables });
      }),
    );
  });
});

const mine = { TOKEN: 'hush', EMPTY: '', GONE: undefined };

describe('variables of -e', () => {
  test.each<[readonly string[], Record<string, string>]>([
    [[], {}],
    [['A=1', 'B=x=y', 'C='], { A: '1', B: 'x=y', C: '' }],
    [['A=1', 'A=2'], { A: '2' }],
    [['TOKEN', 'EMPTY'], { TOKEN: 'hush', EMPTY: '' }],
    [['TOKEN=other'], { TOKEN: 'other' }],
    [['__proto__=1'], Object.fromEntries([['__proto__', '1']])],
  ])('%j', (items, variables) => {
    expect(readEnvFlags(items, mine)).toEqual(variables);
  });

  test.each(['NOT_SET', 'GONE', '=x', 'a b=c', ''])('%j is refused', (item) => {
    expect(() => readEnvFlags([item], mine)).toThrow(expect.objectContaining({ code: 'run/invalid-env' }));
  });
});

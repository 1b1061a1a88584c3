import { describe, expect, test } from 'vitest';
import { mergeEnv } from './merge-env.ts';

const requirement = (name: string, more: object = {}) => ({ name, required: false, secret: false, ...more });

describe('the environment of a server', () => {
  test('a flag beats the file, and both beat the default of the catalogue', async () => {
    const requirements = [
      requirement('A', { default: 'c' }),
      requirement('B', { default: 'c' }),
      requirement('C', { default: 'c' }),
    ];
    const merged = await mergeEnv({ file: { A: 'f', B: 'f' }, flags: { A: 'x' }, requirements });
    expect(merged.env).toEqual({ A: 'x', B: 'f', C: 'c' });
  });
  test('a variable of the file is not asked for', async () => {
    const ask = () => Promise.reject(new Error('asked'));
    const merged = await mergeEnv({
      file: { A: '1' },
      flags: {},
      requirements: [requirement('A', { required: true })],
      ask,
    });
    expect(merged.env).toEqual({ A: '1' });
  });
  test('all missing variables are named at once where nobody can be asked', async () => {
    const requirements = [requirement('A', { required: true }), requirement('B', { required: true })];
    await expect(mergeEnv({ file: {}, flags: {}, requirements })).rejects.toMatchObject({
      code: 'run/missing-env',
      message: 'missing required environment variables: A, B',
    });
  });
  test('an empty answer is an error, not an unset variable', async () => {
    const requirements = [requirement('A', { required: true })];
    await expect(mergeEnv({ file: {}, flags: {}, requirements, ask: async () => '' })).rejects.toMatchObject({
      code: 'run/missing-env',
    });
  });
  test('what is asked for is used, and secrets are remembered as such', async () => {
    const requirements = [
      requirement('TOKEN', { required: true, secret: true }),
      requirement('OTHER', { secret: true }),
    ];
    expect(await mergeEnv({ file: {}, flags: {}, requirements, ask: async () => 's3' })).toEqual({
      env: { TOKEN: 's3' },
      secret: ['TOKEN'],
    });
  });
  test('a value that is no choice is refused without showing a secret', async () => {
    const requirements = [requirement('A', { secret: true, choices: ['x', 'y'] })];
    const failing = mergeEnv({ file: {}, flags: { A: 'hush' }, requirements });
    await expect(failing).rejects.toMatchObject({ code: 'run/invalid-env' });
    await expect(failing).rejects.not.toThrow('hush');
  });
});

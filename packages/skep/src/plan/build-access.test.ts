import { expect, test } from 'vitest';
import { buildAccess } from './build-access.ts';
import type { Surroundings } from './plan.ts';

test('a variable of the shell that is not set there is told, and left out', async () => {
  const told: string[] = [];
  const terminal = { err: (text: string) => void told.push(text) };
  const around = { env: { A_TOKEN: 'hush' }, terminal } as unknown as Surroundings;
  const given = { buildEnv: {}, buildEnvFromSecrets: {}, buildEnvFromShell: ['A_TOKEN', 'B_TOKEN'], buildAuthFiles: {} }; // prettier-ignore
  const access = buildAccess(given, around);
  expect(await access?.reveal()).toMatchObject({ env: { A_TOKEN: 'hush' } });
  expect(told).toEqual(['Warning: B_TOKEN, which builds take from the environment, is not set\n']);
});

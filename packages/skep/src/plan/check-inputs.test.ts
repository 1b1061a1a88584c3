import { expect, test } from 'vitest';
import { places as placesOf } from '@skep/core/files/places.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { checkInputs } from './check-inputs.ts';

const places = placesOf({ env: {}, home: '/nowhere', platform: 'linux', temp: '/nowhere' });

test.each([
  [{ runtimeAddPackage: ['jq', 'git; id'] }, '"git; id"'],
  [{ runtimeAddPackage: ['--root'] }, '"--root"'],
  [{ runtimeImage: 'node\nRUN id' }, 'invalid base image'],
])('%j is refused before anything is looked up', async (given, said) => {
  const values = { group: 'default', targetHost: '127.0.0.1', host: '127.0.0.1', ...given } as RunValues;
  await expect(
    checkInputs(values, { cwd: '/', env: {}, places, terminal: { err() {} } }),
  ).rejects.toMatchObject({
    code: 'runtime/invalid-workload',
    message: expect.stringContaining(said),
  });
});

test.each([
  ['::1', '::1'],
  ['[::1]', '::1'],
  ['0:0:0::A', '::a'],
  ['::', '::'],
  ['127.0.0.2', '127.0.0.2'],
])('the address %s is listened on as %s', async (host, address) => {
  const values = { group: 'default', targetHost: '127.0.0.1', host } as RunValues;
  const inputs = await checkInputs(values, { cwd: '/', env: {}, places, terminal: { err() {} } });
  expect(inputs.host).toBe(address);
});

import { expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { configGrants } from './plan-import.ts';

const plain = { name: 'ab', image: 'x/y', transport: 'stdio' };

test.each<[object, readonly string[]]>([
  [{}, []],
  [{ host: '127.0.0.2', permission_profile: { network: { mode: 'bridge' } } }, []],
  [{ allowed_origins: ['https://a.example'] }, ['let web pages of https://a.example use the server']],
  [{ host: '0.0.0.0' }, ['listen on 0.0.0.0, which other machines can reach']],
  [
    {
      host: '192.0.2.1',
      permission_profile: { write: ['/:/host'], privileged: true, network: { mode: 'host' } },
    },
    [
      'write "/" (as "/host")',
      'run privileged, with all rights of the engine',
      'use the network "host"',
      'listen on 192.0.2.1, which other machines can reach',
    ],
  ],
])('a configuration with %j gives away what it says', (more, grants) => {
  expect(configGrants(decodeRunConfig({ ...plain, ...more }, 'f'), '/cwd')).toEqual(grants);
});

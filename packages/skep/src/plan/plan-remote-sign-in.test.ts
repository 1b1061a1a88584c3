import { expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { mayBePrivateOf } from './plan-remote-sign-in.ts';

const URL = 'https://192.0.2.1/mcp';
const BASE = { name: 'a1', image: URL, remote_url: URL, transport: 'streamable-http' };
const AT = { issuer: 'https://127.0.0.1' };

test.each([
  ['a person', { remote_auth_config: AT }, false, true],
  ['the server', { remote_auth_config: { ...AT, issuer_found: true } }, false, false],
  ['the server, where such catalogues are trusted', { remote_auth_config: { ...AT, issuer_found: true } }, true, false],
  ['a catalogue', { remote_auth_config: AT, registry_server_name: 'x' }, false, false],
  ['a catalogue that is trusted', { remote_auth_config: AT, registry_server_name: 'x' }, true, true],
])('an issuer at a private address that %s named', async (_who, members, allowPrivateRegistryIp, issuer) => {
  const config = decodeRunConfig({ ...BASE, ...members }, 'f');
  expect(await mayBePrivateOf(config, { allowPrivateRegistryIp })).toEqual({ resource: false, issuer });
}); // prettier-ignore

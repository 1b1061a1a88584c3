import { choosePlan, type LocalPlan } from '@skep/core/catalog/run-plan.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { serverDocument } from '@skep/core/catalog/server-json.ts';
import { places } from '@skep/core/files/places.ts';
import { expect, test } from 'vitest';
import type { AppConfig } from '../config/app-config.ts';
import type { CheckedInputs } from './check-inputs.ts';
import type { RunRequest } from './planned-run.ts';
import { layer, settingsOfRun, wantedPort } from './settings-of-run.ts';

/** The plan for a catalogue entry of this transport that names the port 4711. */
function plan(transport: object): LocalPlan {
  const identifier = 'ghcr.io/acme/x:1';
  const document = serverDocument.parse({
    name: 'io.acme/x',
    version: '1.0.0',
    description: 'x',
    packages: [{ registryType: 'oci', identifier, transport }],
    _meta: { [PUBLISHER_META]: { 'io.github.stacklok': { [identifier]: { proxy_port: 4711 } } } },
  });
  return choosePlan(document, { images: true }) as LocalPlan;
}

const http = plan({ type: 'streamable-http', url: 'http://localhost:80/mcp' });
const stdio = plan({ type: 'stdio' });

/** The port of a run with these flags of what a catalogue holds, or of a plain image. */
function portOf(flags: { proxyPort?: number; transport?: 'stdio' | 'streamable-http' }, plan?: LocalPlan) {
  const request = {
    settings: layer('flag', 'x', flags),
    args: undefined,
    values: flags,
  } as unknown as RunRequest;
  const inputs = { env: { files: [], flags: {} } } as unknown as CheckedInputs;
  const config = { caCertificatePath: undefined } as AppConfig;
  const source = { kind: 'image', reference: 'x/y' } as const;
  const resolved = { source, generatedName: 'x', ...(plan ? { plan } : {}) };
  const machine = { env: {}, places: places({ env: {}, home: '/', platform: 'linux', temp: '/' }) };
  return wantedPort(
    settingsOfRun({ request, inputs, config, resolved, isolation: { on: false, hint: '' } }, machine),
  );
}

test('the port that a catalogue names for a server over HTTP is used, and can be given up', () => {
  expect(portOf({}, http)).toMatchObject({
    wanted: 4711,
    hint: expect.stringContaining('--proxy-port 0'),
  });
  expect(portOf({ transport: 'streamable-http' }, stdio).wanted).toBe(4711);
});

test('the flag comes before the catalogue, 0 for any port too', () => {
  expect(portOf({ proxyPort: 5000 }, http)).toEqual({ wanted: 5000 });
  expect(portOf({ proxyPort: 0 }, http)).toEqual({ wanted: 0 });
});

test('a server over stdio gets any free port', () => {
  expect(portOf({}, stdio)).toEqual({});
  expect(portOf({ transport: 'stdio' }, http)).toEqual({});
  expect(portOf({})).toEqual({});
});

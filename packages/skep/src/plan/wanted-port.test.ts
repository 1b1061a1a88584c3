import { choosePlan, type LocalPlan } from '@skep/core/catalog/run-plan.ts';
import { PUBLISHER_META } from '@skep/core/catalog/extension-summary.ts';
import { serverDocument } from '@skep/core/catalog/server-json.ts';
import { expect, test } from 'vitest';
import { wantedPort } from './plan-run.ts';

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
const nothing = { proxyPort: undefined, transport: undefined };

test('the port that a catalogue names for a server over HTTP is used, and can be given up', () => {
  expect(wantedPort(nothing, http)).toMatchObject({
    wanted: 4711,
    hint: expect.stringContaining('--proxy-port 0'),
  });
  expect(wantedPort({ ...nothing, transport: 'streamable-http' }, stdio).wanted).toBe(4711);
});

test('the flag comes before the catalogue, 0 for any port too', () => {
  expect(wantedPort({ ...nothing, proxyPort: 5000 }, http)).toEqual({ wanted: 5000 });
  expect(wantedPort({ ...nothing, proxyPort: 0 }, http)).toEqual({ wanted: 0 });
});

test('a server over stdio gets any free port', () => {
  expect(wantedPort(nothing, stdio)).toEqual({});
  expect(wantedPort({ ...nothing, transport: 'stdio' }, http)).toEqual({});
  expect(wantedPort(nothing, undefined)).toEqual({});
});

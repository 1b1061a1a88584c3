import { execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import { createServer as createTlsServer } from 'node:https';
import { type AddressInfo, createServer as createTcpServer, type Server } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { promisify } from 'node:util';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import type { GatewayConfig } from '../packages/skep/src/egress/gateway-config.ts';
import { GATEWAY_NODE_ENV, GATEWAY_NODE_FLAGS } from '../packages/skep/src/egress/node-flags.ts';
import { certificateFor } from '../packages/skep/src/egress/peers.fixture.ts';
import { proxyEnv } from '../packages/skep/src/egress/proxy-env.ts';
import { readDecisions } from '../packages/skep/src/egress/read-decisions.ts';
import { skepEntry } from './skep.ts';

const run = promisify(execFile);
/** Under the end-to-end tests beside the packed program. */
const GATEWAY = path.join(path.dirname(skepEntry()), 'gateway.mjs');
const MACHINE = 'host.docker.internal';

const ends: (() => unknown)[] = [];
afterEach(async () => {
  for (const end of ends.splice(0).toReversed()) await end();
});

async function listen(server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  ends.push(() => void server.close());
  return (server.address() as AddressInfo).port;
}

async function freePort(): Promise<number> {
  const server = createTcpServer();
  const port = await listen(server);
  server.close();
  return port;
}

/** A gateway as a runtime starts it, whose way to this machine is the one thing that is there to be reached. */
async function gateway(policy: Partial<GatewayConfig['policy']>) {
  const port = await freePort();
  const config: GatewayConfig = {
    mode: 'listen',
    policy: {
      workload: 'demo',
      allowAll: false,
      hosts: [],
      ports: [],
      inbound: [],
      runtimeGateway: true,
      ...policy,
    },
    machine: [],
    answerWith: '127.0.0.1',
    runtimeGateway: { addresses: [], leadsTo: '127.0.0.1' },
    listeners: [{ serve: 'proxy', host: '127.0.0.1', port }],
  };
  const child = startGateway(JSON.stringify(config));
  let output = '';
  child.stdout.on('data', (bytes: Buffer) => void (output += bytes.toString()));
  const [first] = await once(createInterface({ input: child.stdout }), 'line');
  expect(JSON.parse(String(first))).toEqual({ listening: true });
  const end = async () => {
    if (child.exitCode === null) {
      child.kill('SIGTERM');
      await once(child, 'close');
    }
    return readDecisions(output);
  };
  ends.push(end);
  return {
    env: { ...process.env, ...proxyEnv({ host: '127.0.0.1', port }) },
    end,
    code: () => child.exitCode,
  };
}

function startGateway(config: string) {
  return spawn(process.execPath, [...GATEWAY_NODE_FLAGS, GATEWAY], {
    stdio: ['ignore', 'pipe', 'pipe'],
    env: { ...GATEWAY_NODE_ENV, SKEP_GATEWAY: config },
  });
}

const answer: RequestListener = (req, res) => void res.end(`${req.method} ${req.url} of ${req.headers.host}`);

describe('programs as they are', () => {
  const certificate = { key: '', cert: '', file: '' };
  beforeAll(() => {
    const folder = mkdtempSync(path.join(tmpdir(), 'skep-egress-'));
    const file = path.join(folder, 'cert.pem');
    Object.assign(certificate, certificateFor(MACHINE), { file });
    writeFileSync(file, certificate.cert);
    return () => rmSync(folder, { recursive: true });
  });

  const fetched = async (url: string, env: NodeJS.ProcessEnv) => {
    const code = `fetch(${JSON.stringify(url)}).then(async (r) => console.log(r.status, await r.text()), (e) => console.log(String(e.cause ?? e)))`;
    const more = { NODE_EXTRA_CA_CERTS: certificate.file };
    return (await run(process.execPath, ['-e', code], { env: { ...env, ...more } })).stdout.trim();
  };

  test("Node's own fetch goes through the gateway, for http and https", async () => {
    const { env, end } = await gateway({});
    const http = await listen(createServer(answer));
    const https = await listen(createTlsServer(certificate, answer));
    expect(await fetched(`http://${MACHINE}:${http}/a`, env)).toBe(`200 GET /a of ${MACHINE}:${http}`);
    expect(await fetched(`https://${MACHINE}:${https}/b`, env)).toBe(`200 GET /b of ${MACHINE}:${https}`);
    expect(await end()).toMatchObject([
      { decision: 'allowed', host: MACHINE, port: http, via: 'proxy', count: 1 },
      { decision: 'allowed', host: MACHINE, port: https, via: 'proxy', count: 1 },
    ]);
  });

  test('curl too, which is told what would allow what it is refused', async () => {
    const { env } = await gateway({ runtimeGateway: false });
    const { stdout } = await run('curl', ['-s', 'http://evil.example:8080/'], { env });
    expect(stdout).toContain('skep permit demo evil.example:8080');
    const refused = run('curl', ['-sS', 'https://evil.example/'], { env });
    await expect(refused).rejects.toThrow(/403/);
    expect((await run('curl', ['-s', `http://${MACHINE}/`], { env })).stdout).toContain(
      '--allow-runtime-gateway',
    );
  });

  test('what is refused is refused to fetch', async () => {
    const { env, end } = await gateway({ hosts: ['api.example'] });
    expect(await fetched('https://evil.example/', env)).toMatch(/403|cancelled/);
    expect(await end()).toMatchObject([
      { decision: 'denied', host: 'evil.example', port: 443, via: 'proxy' },
    ]);
  });
});

test('counts that were not written yet are written with SIGTERM', async () => {
  const { env, end, code } = await gateway({ runtimeGateway: false });
  for (let times = 0; times < 3; times += 1) await run('curl', ['-s', 'http://evil.example/'], { env });
  expect(await end()).toMatchObject([{ host: 'evil.example', count: 3 }]);
  expect(code()).toBe(0);
});

describe('a configuration that is wrong in any way starts nothing', () => {
  const good = {
    mode: 'listen',
    policy: { workload: 'demo', allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: false },
    machine: [],
    answerWith: '127.0.0.1',
    runtimeGateway: { addresses: [] },
    listeners: [],
  };
  test.each([
    ['none', '', 'SKEP_GATEWAY is not JSON'],
    ['another type', '[]', 'must be an object'],
    ['an unknown member', { ...good, more: 1 }, 'has an unknown key: "more"'],
    [
      'an unknown rule',
      { ...good, policy: { ...good.policy, deny: [] } },
      '/policy has an unknown key: "deny"',
    ],
    ['no policy', { ...good, policy: undefined }, '/policy'],
    ['a host that is none', { ...good, policy: { ...good.policy, hosts: ['a b'] } }, '"a b" is not a host'],
    ['a port that is none', { ...good, policy: { ...good.policy, ports: [0] } }, '/policy/ports/0'],
    ['an address in another spelling', { ...good, machine: ['0x7f.1'] }, '/machine/0'],
    [
      'an unknown service',
      { ...good, listeners: [{ serve: 'ftp', host: '127.0.0.1', port: 1 }] },
      '/listeners/0/serve',
    ],
    [
      'no server behind it',
      { ...good, listeners: [{ serve: 'ingress', host: '127.0.0.1', port: 0 }] },
      'an ingress leads nowhere',
    ],
    [
      'an address that is not here',
      { ...good, listeners: [{ serve: 'proxy', host: '192.0.2.1', port: 0 }] },
      'EADDRNOTAVAIL',
    ],
  ])('%s', async (_what, config, said) => {
    const child = startGateway(typeof config === 'string' ? config : JSON.stringify(config));
    let errors = '';
    child.stderr.on('data', (bytes: Buffer) => void (errors += bytes.toString()));
    const [code] = (await once(child, 'close')) as [number];
    expect(code).toBe(1);
    expect(errors).toMatch(/^Error: [^\n]*\n$/);
    expect(errors).toContain(said);
  });
});

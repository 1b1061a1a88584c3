import { once } from 'node:events';
import { readFile, rename, stat } from 'node:fs/promises';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type OtlpCollector, startOtlpCollector } from './fixtures/otlp-collector.ts';
import { npmPostgres } from './postgres/binaries.ts';
import { Cluster } from './postgres/cluster.ts';
import { linesOf, type Line } from './registry/json-lines.ts';
import { RegistryFolder, type Running } from './registry/process.ts';
import { component, title } from './require.ts';

// Audit log, metrics, traces, log lines and the end of the program, as an operator sees them.

const postgres = await component('postgres');

const SERVERS = [
  { name: 'io.acme/weather', description: 'Weather', version: '1.0.0' },
  { name: 'io.acme/news', description: 'News', version: '1.0.0' },
];

let folder: RegistryFolder;
let collector: OtlpCollector;
beforeEach(async () => {
  folder = await RegistryFolder.create();
  collector = await startOtlpCollector();
});
afterEach(async () => {
  await folder.remove();
  await collector.close();
});

async function configured(blocks: object): Promise<string> {
  await folder.write('catalog.json', JSON.stringify(SERVERS));
  return folder.write(
    'registry.yaml',
    JSON.stringify({
      sources: [
        { name: 'files', file: { path: 'catalog.json' }, syncPolicy: { interval: '1h' } },
        { name: 'own', managed: {} },
      ],
      registries: [{ name: 'all', sources: ['files', 'own'] }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
      ...blocks,
    }),
  );
}

const serve = async (blocks: object): Promise<Running> => folder.serve(await configured(blocks));

async function get(url: string, headers: Record<string, string> = {}) {
  const response = await fetch(url, { headers });
  const type = response.headers.get('content-type');
  return { status: response.status, type, text: await response.text() };
}

describe('the audit log', () => {
  test('is a private file with a line per governed request, complete when the program has ended', async () => {
    const registry = await serve({ audit: { enabled: true, logFile: 'audit.log' } });
    await get(`${registry.open}/all/v0.1/servers`, {
      authorization: 'Bearer hunter2',
      'x-request-id': 'my-id',
    });
    await get(`${registry.open}/registry/none/v0.1/servers/a%2Fb/versions/1`);
    await get(`${registry.open}/openapi.json`);
    expect((await registry.stop()).code).toBe(0);
    const file = path.join(folder.path, 'audit.log');
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    const text = await readFile(file, 'utf8');
    expect(text).not.toContain('hunter2');
    const requests = linesOf(text).filter(({ source }) => (source as Line).type === 'network');
    expect(requests).toMatchObject([
      {
        level: 'AUDIT',
        type: 'server.list',
        outcome: 'success',
        subjects: { identity: 'anonymous' },
        target: { method: 'GET', path: '/all/v0.1/servers', registry_name: 'all', resource_type: 'server' },
        metadata: { extra: { request_id: 'my-id', status: 200 } },
      },
      { type: 'server.version.read', outcome: 'failure', target: { resource_name: 'a/b', version: '1' } },
    ]);
  });

  test('goes on in a new file after SIGHUP', async () => {
    const registry = await serve({
      audit: { enabled: true, logFile: 'audit.log', eventTypes: ['server.list'] },
    });
    const file = path.join(folder.path, 'audit.log');
    await get(`${registry.open}/all/v0.1/servers?limit=1`);
    while (linesOf(await readFile(file, 'utf8')).length === 0) await delay(10);
    await rename(file, `${file}.1`);
    registry.child.kill('SIGHUP');
    while (!(await stat(file).catch(() => false))) await delay(10);
    await get(`${registry.open}/all/v0.1/servers?limit=2`);
    await registry.stop();
    expect(linesOf(await readFile(`${file}.1`, 'utf8'))).toHaveLength(1);
    expect(linesOf(await readFile(file, 'utf8'))).toHaveLength(1);
  });

  test('is written to standard output where no file is named', async () => {
    const registry = await serve({
      audit: { enabled: true, excludeEventTypes: ['source.sync', 'config.reconcile'] },
    });
    await get(`${registry.open}/all/v0.1/servers`);
    const { stdout } = await registry.stop();
    expect(linesOf(stdout)).toMatchObject([{ type: 'server.list' }]);
  });

  test('holds what the program did by itself: the start and its synchronisations', async () => {
    const registry = await serve({ audit: { enabled: true, logFile: 'audit.log' } });
    await registry.stop();
    const text = await readFile(path.join(folder.path, 'audit.log'), 'utf8');
    const own = linesOf(text).filter(({ subjects }) => (subjects as Line)['identity'] === 'system');
    expect(new Set(own.map(({ type }) => type))).toEqual(new Set(['config.reconcile', 'source.sync']));
    expect(own.find(({ type }) => type === 'source.sync')).toMatchObject({
      outcome: 'success',
      target: { resource_type: 'source', resource_name: 'files' },
    });
  });

  test('that cannot be opened stops the start with one line', async () => {
    const config = await configured({ audit: { enabled: true, logFile: 'none/audit.log' } });
    const { code, stderr } = await folder.run(
      'serve',
      '--config',
      config,
      '--address',
      '127.0.0.1:0',
      '--internal-address',
      '127.0.0.1:0',
    );
    expect(code).toBe(1);
    expect(stderr).toMatch(/Error: cannot open the audit log ".*none\/audit\.log": ENOENT;/u);
  });
});

describe('metrics', () => {
  test('are on the internal listener and pushed at the end', async () => {
    const registry = await serve({
      telemetry: { enabled: true, endpoint: collector.url, metrics: { enabled: true } },
    });
    await get(`${registry.open}/all/v0.1/servers`);
    await get(`${registry.open}/surprise/${'x'.repeat(50)}`);
    await get(`${registry.internal}/health`);
    const { status, text, type } = await get(`${registry.internal}/metrics`);
    expect([status, type]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(text).toMatch(
      /^http_server_request_duration_seconds_count\{http_request_method="GET",url_scheme="http",http_route="\/\{registry\}\/v0\.1\/servers",http_response_status_code="200"[^}]*\} 1$/mu,
    );
    expect(text).toMatch(
      /^skep_registry_http_requests_total\{.*http_route="unknown_route",http_response_status_code="404".*\} 1$/mu,
    );
    expect(text).toMatch(/^skep_registry_servers\{source="files".*\} 2$/mu);
    expect(text).toMatch(
      /^skep_registry_sync_duration_seconds_count\{source="files",outcome="success".*\} 1$/mu,
    );
    expect(text).toMatch(/^skep_registry_build_info\{version="[^"]+".*\} 1$/mu);
    expect(text).not.toContain('surprise');
    expect((await get(`${registry.open}/metrics`)).status).toBe(404);
    expect((await registry.stop()).code).toBe(0);
    expect(collector.metricNames()).toContain('http.server.request.duration');
  });

  test.skipIf(!postgres.available)(title('tell of the connections to PostgreSQL', postgres), async () => {
    const cluster = await Cluster.start({ bin: (await npmPostgres()) ?? '' });
    try {
      const registry = await serve({
        telemetry: { enabled: true, endpoint: '', metrics: { enabled: true } },
        database: {
          host: '127.0.0.1',
          port: cluster.port,
          user: 'postgres',
          database: await cluster.createDatabase(),
          sslMode: 'disable',
          maxOpenConns: 7,
        },
      });
      const { text } = await get(`${registry.internal}/metrics`);
      expect(text).toMatch(/^db_client_connection_max\{[^}]*\} 7$/mu);
      const count = (state: string): number =>
        Number(new RegExp(`^db_client_connection_count\\{.*"${state}".*\\} (\\d+)$`, 'mu').exec(text)?.[1]);
      expect(count('idle') + count('used')).toBeGreaterThan(0);
      expect(text).toMatch(/^db_client_connection_pending_requests\{[^}]*\} 0$/mu);
      expect((await registry.stop()).code).toBe(0);
    } finally {
      await cluster.stop();
    }
  });

  test('are not there unless they are enabled', async () => {
    const registry = await serve({});
    expect((await get(`${registry.internal}/metrics`)).status).toBe(404);
    await registry.stop();
  });
});

describe('traces', () => {
  const TRACE = '0af7651916cd43dd8448eb211c80319c';

  test('join the caller’s, reach store and synchronisation, and are named by log lines', async () => {
    const registry = await serve({
      telemetry: { enabled: true, endpoint: collector.url, tracing: { enabled: true, sampling: 1 } },
    });
    await get(`${registry.open}/all/v0.1/servers`, { traceparent: `00-${TRACE}-b7ad6b7169203331-01` });
    await get(`${registry.open}/v1/sources`);
    await get(`${registry.internal}/health`);
    const { stderr } = await registry.stop();
    const spans = collector.spans();
    const list = spans.find(({ name }) => name === 'GET /{registry}/v0.1/servers');
    expect(list).toMatchObject({ traceId: TRACE, parentSpanId: 'b7ad6b7169203331' });
    expect(spans.map(({ name }) => name)).toContain('sync.performRegistrySync');
    const sources = spans.find(({ name }) => name === 'GET /v1/sources');
    const query = spans.find(
      ({ name, traceId }) => name === 'dbService.ListSources' && traceId === sources?.traceId,
    );
    expect(query?.parentSpanId).toBe(sources?.spanId);
    expect(spans.filter(({ name }) => name.includes('health'))).toEqual([]);
    const line = linesOf(stderr).find(
      ({ msg, path: at }) => msg === 'HTTP request' && at === '/all/v0.1/servers',
    );
    expect(line).toMatchObject({ trace_id: TRACE, span_id: list?.spanId, status: 200 });
  });

  test('of a collector that is not there disturb nobody', async () => {
    const registry = await serve({
      telemetry: {
        enabled: true,
        endpoint: 'http://127.0.0.1:9',
        tracing: { enabled: true, sampling: 1 },
        metrics: { enabled: true },
      },
    });
    expect((await get(`${registry.open}/all/v0.1/servers`)).status).toBe(200);
    const before = Date.now();
    expect((await registry.stop()).code).toBe(0);
    expect(Date.now() - before).toBeLessThan(8_000);
  });
});

describe('the end', () => {
  const DOCUMENT = JSON.stringify({
    name: 'io.acme/late',
    description: 'Published while stopping',
    version: '1.0.0',
  });

  /** A publish of which only the first half has been sent. */
  async function halfPublished(base: string) {
    const { hostname, port } = new URL(base);
    const socket = net.connect(Number(port), hostname);
    await once(socket, 'connect');
    let answer = '';
    socket.on('data', (chunk: Buffer) => (answer += chunk.toString()));
    const head = ['POST /all/v0.1/publish HTTP/1.1', 'Host: localhost', 'Content-Type: application/json'];
    socket.write(
      `${head.join('\r\n')}\r\nContent-Length: ${DOCUMENT.length}\r\n\r\n${DOCUMENT.slice(0, 10)}`,
    );
    // The server has begun with it once a later request is answered.
    await get(`${base}/openapi.json`);
    return {
      finish: async () => {
        const closed = once(socket, 'close');
        socket.write(DOCUMENT.slice(10));
        await closed;
        return answer;
      },
      drop: () => socket.destroy(),
    };
  }

  test('lets a request that runs finish, store and audit log included', async () => {
    const registry = await serve({
      audit: { enabled: true, logFile: 'audit.log', eventTypes: ['entry.publish'] },
    });
    const publish = await halfPublished(registry.open);
    const ended = registry.stop();
    while ((await get(`${registry.internal}/readiness`)).status !== 503) await delay(5);
    await expect(fetch(`${registry.open}/openapi.json`)).rejects.toThrow();
    const answer = await publish.finish();
    expect(answer).toMatch(/^HTTP\/1\.1 201 /u);
    expect((await ended).code).toBe(0);
    const [line] = linesOf(await readFile(path.join(folder.path, 'audit.log'), 'utf8'));
    expect(line).toMatchObject({ type: 'entry.publish', outcome: 'success' });
    const again = await serve({});
    expect((await get(`${again.open}/all/v0.1/servers/io.acme%2Flate/versions/1.0.0`)).status).toBe(200);
    await again.stop();
  });

  test('comes at once with the second signal', async () => {
    const registry = await serve({});
    const publish = await halfPublished(registry.open);
    const ended = registry.stop();
    while ((await get(`${registry.internal}/readiness`)).status !== 503) await delay(5);
    registry.child.kill('SIGTERM');
    expect((await ended).code).toBe(1);
    publish.drop();
  });
});

test('shows the internal listener of this machine to no web page that lets its own name point there', async () => {
  const registry = await serve({});
  const status = (headers: Record<string, string>): Promise<number | undefined> =>
    new Promise((resolve, reject) => {
      http
        .get(`${registry.internal}/version`, { headers }, (answer) => {
          answer.resume();
          resolve(answer.statusCode);
        })
        .on('error', reject);
    });
  expect(await status({})).toBe(200);
  expect(await status({ host: 'localhost:8081' })).toBe(200);
  expect(await status({ host: 'page.example:8081' })).toBe(403);
  expect(await status({ origin: 'http://page.example' })).toBe(403);
  await registry.stop();
});

test('asks nobody for a token on the internal listener, not even for what is not there', async () => {
  const provider = { name: 'away', issuerUrl: 'http://127.0.0.1:9', audience: 'a', allowPrivateIP: true };
  const registry = await serve({ auth: { oauth: { providers: [provider] } } });
  const statuses = ['/health', '/readiness', '/version', '/v1/me', '/all/v0.1/servers', '/nothing'].map(
    async (url) => (await get(registry.internal + url)).status,
  );
  expect(await Promise.all(statuses)).toEqual([200, 200, 200, 404, 404, 404]);
  expect((await fetch(`${registry.internal}/health`, { method: 'POST' })).status).toBe(405);
  expect((await get(`${registry.open}/health`)).status).toBe(401);
  await registry.stop();
});

test('obeys configured limits and origins', async () => {
  const registry = await serve({
    cors: { allowedOrigins: ['https://app.example'] },
    limits: { pageSize: { max: 1 }, maxBodySize: 1024 },
  });
  const url = `${registry.open}/all/v0.1/servers?limit=2`;
  const list = await fetch(url, { headers: { origin: 'https://app.example' } });
  expect(list.headers.get('access-control-allow-origin')).toBe('https://app.example');
  expect(await list.json()).toMatchObject({ metadata: { count: 1 } });
  const preflight = await fetch(url, {
    method: 'OPTIONS',
    headers: { origin: 'https://app.example', 'access-control-request-method': 'GET' },
  });
  expect(preflight.status).toBe(204);
  const headers = { 'content-type': 'application/json' };
  const large = await fetch(`${registry.open}/all/v0.1/publish`, {
    method: 'POST',
    headers,
    body: JSON.stringify({ name: 'io.acme/x', version: '1', description: 'x'.repeat(1024) }),
  });
  expect([large.status, await large.json()]).toEqual([413, { error: 'request body too large' }]);
  await registry.stop();
});

test('gives a request the configured time to arrive', async () => {
  const storage = { path: ':memory:' };
  const usual = await serve({ storage });
  const short = await serve({ storage, limits: { requestTimeout: '1s' } });
  const sockets = [usual, short].map(({ open }) => net.connect(Number(new URL(open).port), '127.0.0.1'));
  const answers = sockets.map(async (socket) => {
    socket.write('GET /all/v0.1/servers HTTP/1.1\r\nhost: localhost\r\n');
    const [data] = await once(socket, 'data');
    return [sockets.indexOf(socket), String(data).split('\r\n')[0]];
  });
  expect(await Promise.race(answers)).toEqual([1, 'HTTP/1.1 408 Request Timeout']);
  for (const socket of sockets) socket.destroy();
  await Promise.all([usual.stop(), short.stop()]);
});

test('writes one access line per request with a request id that cannot break it', async () => {
  const registry = await serve({});
  await get(`${registry.open}/all/v0.1/servers?cursor=`, { 'x-request-id': 'good-id.1' });
  await get(`${registry.open}/none/v0.1/servers`, { 'x-request-id': 'bad id "x"' });
  await get(`${registry.open}/%zz`);
  const { stderr } = await registry.stop();
  const lines = linesOf(stderr).filter(({ msg }) => msg === 'HTTP request');
  expect(lines).toMatchObject([
    { level: 'info', method: 'GET', path: '/all/v0.1/servers', status: 200, request_id: 'good-id.1' },
    { level: 'warn', path: '/none/v0.1/servers', status: 404 },
    { level: 'warn', path: '/%zz', status: 400 },
  ]);
  expect(lines[1]?.['request_id']).toMatch(/^[0-9a-f-]{36}$/u);
  expect(linesOf(stderr).map(({ msg }) => msg)).toContain(
    'Anonymous mode: authentication and authorization are disabled; development only',
  );
});

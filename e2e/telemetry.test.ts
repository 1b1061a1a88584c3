import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { parsePrometheus } from '../packages/proxy/src/doubles/prometheus-text.ts';
import { npmRegistryWith, type NpmRegistry } from './fixtures/npm-registry.ts';
import { startOtlpCollector, type OtlpCollector } from './fixtures/otlp-collector.ts';
import { component, title } from './require.ts';
import { openUser, type TestUser } from './skep.ts';

// What the packed program tells a collector, and a scraper, of the calls of a workload.

const sandbox = await component('sandbox');
const PACKAGE = 'skep-test-telemetry';
const SERVER = `#!/usr/bin/env node
import { createInterface } from 'node:readline';
createInterface({ input: process.stdin }).on('line', (line) => {
  const { id, method, params } = JSON.parse(line);
  const result = {
    initialize: { protocolVersion: params?.protocolVersion, capabilities: { tools: {} }, serverInfo: { name: 't', version: '1' } },
    'tools/list': { tools: [{ name: 'tell', inputSchema: { type: 'object' } }] },
    'tools/call': { content: [{ type: 'text', text: String(params?._meta?.traceparent) }], isError: params?.arguments?.fail === true },
  }[method];
  if (id !== undefined) process.stdout.write(JSON.stringify({ jsonrpc: '2.0', id, result }) + '\\n');
});
`;

describe.skipIf(!sandbox.available)(title('a workload that is measured', sandbox), () => {
  let registry: NpmRegistry;
  let collector: OtlpCollector;
  let user: TestUser;
  beforeAll(async () => {
    registry = await npmRegistryWith(PACKAGE, SERVER);
    collector = await startOtlpCollector();
    user = openUser({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url, REGION: 'eu' });
  });
  afterAll(async () => {
    await user.end();
    await collector.close();
    await registry[Symbol.asyncDispose]();
  });

  test('tells a collector and a scraper what its clients called', async () => {
    const flags = `--otel-endpoint ${collector.url} --otel-sampling-rate 1 --otel-env-vars REGION --otel-enable-prometheus-metrics-path --otel-headers X-Key=hunter3`;
    const ran = await user.skep(['run', `npx://${PACKAGE}`, '--name', 'measured', ...flags.split(' ')]);
    expect(ran.code, ran.stderr).toBe(0);
    const client = new Client({ name: 'official', version: '1' });
    await client.connect(new StreamableHTTPClientTransport(new URL(ran.stdout.trim())));
    const told = await client.callTool({ name: 'tell', arguments: { secret: 'hunter2' } });
    await client.callTool({ name: 'tell', arguments: { fail: true } });
    await client.close();

    const { port } = JSON.parse((await user.skep(['status', 'measured', '--format', 'json'])).stdout);
    const scraped = parsePrometheus(await (await fetch(`http://127.0.0.1:${port}/metrics`)).text());
    const calls = scraped.filter(({ name }) => name === 'skep_mcp_tool_calls_total');
    expect(calls.map(({ labels, value }) => [labels['tool'], labels['status'], value])).toEqual([
      ['tell', 'success', 1],
      ['tell', 'error', 1],
    ]);

    expect(await user.skep(['stop', 'measured'])).toMatchObject({ code: 0 });
    const spans = collector.spans();
    expect(spans.map(({ name }) => name)).toEqual(expect.arrayContaining(['initialize', 'tools/call tell']));
    const [call] = spans.filter(({ name }) => name === 'tools/call tell');
    expect(call?.attributes).toMatchObject({
      'gen_ai.tool.call.arguments': '{"secret":"string"}',
      'mcp.tool.name': 'tell',
      'environment.REGION': 'eu',
    });
    expect(JSON.stringify(spans)).not.toContain('hunter2');
    expect(told.content).toMatchObject([{ text: `00-${call?.traceId}-${call?.spanId}-01` }]);
    expect(new Set(collector.headers().map((headers) => headers['x-key']))).toEqual(new Set(['hunter3']));
    // Whoever started it asked for its tools, and is no client.
    expect(spans.filter(({ name }) => name === 'initialize')).toHaveLength(1);
    expect(collector.metricNames()).toContain('mcp.server.operation.duration');
  }, 120_000);
});

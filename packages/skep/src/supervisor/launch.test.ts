import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/decode.ts';
import { MemoryRuntime } from '../runtime/memory/memory-runtime.ts';
import type { Runtime, WorkloadSpec } from '../runtime/runtime.ts';
import { forwardTarget, launch } from './launch.ts';
import { toWorkloadSpec } from './workload-spec.ts';

let busy: Server;
let port: number;
beforeEach(async () => {
  busy = createServer();
  await new Promise<void>((resolve) => void busy.listen(0, '127.0.0.1', resolve));
  port = (busy.address() as AddressInfo).port;
});
afterEach(() => new Promise((resolve) => void busy.close(resolve)));

/** A runtime in memory whose workloads have the network of the machine, for that reason. */
class Sharing extends MemoryRuntime {
  readonly sharesNetwork = 'a test says so';
}

const http = (target_port: number, changes: object = {}) =>
  decodeRunConfig(
    { name: 'web', image: 'fake:1', transport: 'streamable-http', target_port, ...changes },
    'test',
  );
const launching = (runtime: Runtime) => ({ runtime, owner: 'me', random: (min: number) => min });

describe('an HTTP server in the network of the machine', () => {
  test('is not started on a port that another program has, which would be taken for it', async () => {
    const runtime = new Sharing();
    await expect(launch(http(port), launching(runtime))).rejects.toMatchObject({
      code: 'run/port-busy',
      message: expect.stringContaining(String(port)),
    });
    expect(await runtime.inspect('web')).toBeUndefined();
  });

  test('is not started there with --network host either', async () => {
    const config = http(port, { permission_profile: { network: { mode: 'host' } } });
    await expect(launch(config, launching(new MemoryRuntime()))).rejects.toMatchObject({
      code: 'run/port-busy',
    });
  });

  test('is told to listen on loopback only', () => {
    const spec = specOn({ kind: 'sandbox', sharesNetwork: 'a test says so' });
    expect(spec.env).toMatchObject({ MCP_HOST: '127.0.0.1' });
    expect(spec.ports).toEqual([]);
  });
});

describe('an HTTP server in a network of its own', () => {
  test('gets a port of the machine that nobody has, whatever its own port is', async () => {
    const config = http(port);
    const { observed } = await launch(config, launching(new MemoryRuntime()));
    const target = forwardTarget(config, observed);
    expect(target?.hostname).toBe('127.0.0.1');
    expect(Number(target?.port)).not.toBe(port);
  });

  test.each([
    ['sandbox', '127.0.0.1'],
    ['docker', '0.0.0.0'],
  ] as const)('is told in the %s to listen where the proxy reaches it, on %s', (kind, address) => {
    expect(specOn({ kind }).env).toMatchObject({ MCP_HOST: address });
  });
});

function specOn(runtime: Pick<Runtime, 'kind' | 'sharesNetwork'>): WorkloadSpec {
  return toWorkloadSpec(http(3000), { owner: 'me', runtime });
}

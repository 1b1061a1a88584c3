import net from 'node:net';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { ContractBench } from './bench.ts';
import { freePort, lanAddress, listening, portOf } from './machine-side.ts';
import type { ProbeCaller } from './probe-caller.ts';

const ABSTRACT = `\0skep-contract-${process.pid}`;

/** What a workload can reach and what reaches it. */
export function networkContract(bench: ContractBench): void {
  const listeners: net.Server[] = [];
  let open: number;
  let loopback: number;
  beforeAll(async () => {
    const [everywhere, here] = [await listening({ port: 0, host: '0.0.0.0' }), await listening({ port: 0, host: '127.0.0.1' })]; // prettier-ignore
    listeners.push(everywhere, here, await listening({ path: ABSTRACT }));
    open = portOf(everywhere);
    loopback = portOf(here);
  });
  afterAll(() => {
    for (const one of listeners) one.close();
  });

  test('is really off with "none"', async () => {
    const { probe } = await bench.running({ network: 'none' });
    expect(await probe.call('probe/interfaces')).toEqual(expect.not.arrayContaining(['eth0', 'tap0']));
    await expect(probe.call('probe/connect', { host: '127.0.0.1', port: open })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
    await expect(probe.call('probe/connect', { host: '192.0.2.1', port: 80 })).rejects.toMatchObject({
      code: 'ENETUNREACH',
    });
  });

  test('leads out of the machine with "bridge"', async ({ skip }) => {
    if (bench.runtime.narrowNetwork !== undefined) skip(bench.runtime.narrowNetwork);
    const { probe } = await bench.running({ network: 'bridge' });
    // Without root the networks of an engine end in a namespace of its user's.
    const isHere = bench.runtime.kind === 'docker' && bench.harness.owner === undefined;
    const host = isHere ? await gateway(probe) : lanAddress();
    if (host === undefined) skip('this machine has no address but loopback');
    expect(await probe.call('probe/connect', { host, port: open })).toBe('connected');
  });

  test('reaches no service on the loopback of this machine with "bridge"', async () => {
    const { probe } = await bench.running({ network: 'bridge' });
    const lan = bench.runtime.narrowNetwork === undefined ? [await gateway(probe)] : [];
    for (const host of ['127.0.0.1', ...lan]) {
      await expect(probe.call('probe/connect', { host, port: loopback })).rejects.toThrow();
    }
  });

  test('reaches no abstract socket of this machine with "bridge"', async () => {
    const { probe } = await bench.running({ network: 'bridge' });
    await expect(probe.call('probe/connect', { path: ABSTRACT })).rejects.toThrow();
  });

  test('reaches the loopback of this machine with "host", which a person must ask for', async () => {
    const { probe } = await bench.running({ network: 'host' });
    expect(await probe.call('probe/connect', { host: '127.0.0.1', port: loopback })).toBe('connected');
  });

  portsContract(bench);
}

/** Ports of this machine that lead to a workload. */
function portsContract(bench: ContractBench): void {
  test('gives two workloads a port of the same number each, that nobody else sees', async () => {
    const inside = await freePort();
    for (const says of ['one', 'two']) {
      const hostPort = await freePort();
      const ports = [{ hostIp: '127.0.0.1', hostPort, containerPort: inside }];
      const { probe } = await bench.running({ network: 'bridge', ports });
      expect(await probe.call('probe/listen', { port: inside, says })).toBe('listening');
      expect(await readFrom('127.0.0.1', hostPort)).toBe(says);
    }
    await expect(readFrom('127.0.0.1', inside)).rejects.toThrow('ECONNREFUSED');
    const lan = lanAddress();
    if (lan !== undefined) await expect(readFrom(lan, inside)).rejects.toThrow('ECONNREFUSED');
  });

  test('publishes a port on the given address', async () => {
    const free = await freePort();
    const ports = [{ hostIp: '127.0.0.1', hostPort: free, containerPort: free }];
    const { probe } = await bench.running({ network: 'bridge', ports });
    expect(await probe.call('probe/listen', { port: free })).toBe('listening');
    expect(await readFrom('127.0.0.1', free)).toBe('hello from inside');
  });

  test('publishes in the sandbox what listens on its loopback only, too', async ({ skip }) => {
    if (bench.runtime.kind !== 'sandbox') skip('engines forward to the address of a container');
    const free = await freePort();
    const ports = [{ hostIp: '127.0.0.1', hostPort: free, containerPort: free }];
    const { probe } = await bench.running({ network: 'bridge', ports });
    expect(await probe.call('probe/listen', { port: free, host: '127.0.0.1' })).toBe('listening');
    expect(await readFrom('127.0.0.1', free)).toBe('hello from inside');
  });
}

async function gateway(probe: ProbeCaller): Promise<string> {
  return String(await probe.call('probe/gateway'));
}

async function readFrom(host: string, port: number): Promise<string> {
  const socket = net.connect({ host, port });
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

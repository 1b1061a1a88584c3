import net from 'node:net';
import { afterAll, beforeAll, expect, it } from 'vitest';
import type { ContractBench } from './bench.ts';

/** What a workload can reach and what reaches it. */
export function networkContract(bench: ContractBench): void {
  let listener: net.Server;
  let port: number;
  beforeAll(async () => {
    listener = net.createServer((socket) => void socket.end());
    await new Promise<void>((resolve) => void listener.listen(0, '0.0.0.0', resolve));
    port = (listener.address() as net.AddressInfo).port;
  });
  afterAll(() => void listener.close());

  it('is really off with "none"', async () => {
    const { probe } = await bench.running({ network: 'none' });
    expect(await probe.call('probe/interfaces')).toEqual(expect.not.arrayContaining(['eth0']));
    await expect(probe.call('probe/connect', { host: '127.0.0.1', port })).rejects.toMatchObject({
      code: 'ECONNREFUSED',
    });
    await expect(probe.call('probe/connect', { host: '192.0.2.1', port: 80 })).rejects.toMatchObject({
      code: 'ENETUNREACH',
    });
  });

  it('reaches a listener of this machine with "bridge"', async () => {
    const { probe } = await bench.running({ network: 'bridge' });
    const host = bench.runtime.kind === 'sandbox' ? '127.0.0.1' : await probe.call('probe/gateway');
    expect(await probe.call('probe/connect', { host, port })).toBe('connected');
  });

  it('publishes a port on the given address', async () => {
    const free = await freePort();
    const ports = [{ hostIp: '127.0.0.1', hostPort: free, containerPort: free }];
    const { probe } = await bench.running({ network: 'bridge', ports });
    expect(await probe.call('probe/listen', { port: free })).toBe('listening');
    expect(await readFrom('127.0.0.1', free)).toBe('hello from inside');
  });
}

async function freePort(): Promise<number> {
  const server = net.createServer();
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as net.AddressInfo;
  await new Promise((resolve) => server.close(resolve));
  return port;
}

async function readFrom(host: string, port: number): Promise<string> {
  const socket = net.connect({ host, port });
  let text = '';
  for await (const chunk of socket) text += String(chunk);
  return text;
}

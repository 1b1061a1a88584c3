import { createServer, request } from 'node:http';
import { afterAll, beforeAll, expect, test } from 'vitest';
import type { EgressPolicy } from '../../egress/policy.ts';
import type { WorkloadSpec } from '../runtime.ts';
import type { ContractBench } from './bench.ts';
import { freePort, lanAddress, listening, portOf } from './machine-side.ts';
import type { ProbeCaller } from './probe-caller.ts';

const ABSTRACT = `\0skep-isolation-${process.pid}`;
/** Where clouds tell a machine its credentials. */
const METADATA = '169.254.169.254';
const NOTHING = { allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: false } as const;

const isolated = (
  policy: Partial<EgressPolicy>,
  more: Partial<WorkloadSpec> = {},
): Partial<WorkloadSpec> => ({
  network: 'bridge',
  isolation: { workload: 'contract', ...NOTHING, ...policy },
  ...more,
});

/** Two HTTP servers on this machine, the second one of which nothing lists, and an abstract socket. */
class MachineServers {
  readonly host = lanAddress() ?? '';
  readonly #opened: { close(): unknown }[] = [];
  open = 0;
  other = 0;

  async start(): Promise<void> {
    this.open = await this.#serve('open');
    this.other = await this.#serve('other');
    this.#opened.push(await listening({ path: ABSTRACT }));
  }

  end(): void {
    for (const one of this.#opened) one.close();
  }

  async #serve(says: string): Promise<number> {
    const server = createServer((_, response) => void response.end(says));
    await new Promise<void>((resolve) => void server.listen(0, '0.0.0.0', resolve));
    this.#opened.push(server);
    return portOf(server);
  }
}

/** What a workload with a gateway of its own can reach and what reaches it. Servers listen on this machine, which the profile names. */
export function isolationContract(bench: ContractBench): void {
  const machine = new MachineServers();
  beforeAll(() => machine.start());
  afterAll(() => machine.end());
  egressContract(bench, machine);
  ingressContract(bench, machine);
}

function egressContract(bench: ContractBench, machine: MachineServers): void {
  const { host } = machine;

  test.skipIf(host === '')('reaches the hosts and ports that its profile lists and no others', async () => {
    const { name, probe } = await bench.running(isolated({ hosts: [host], ports: [machine.open] }));
    expect(await probe.call('probe/fetch', { url: `http://${host}:${machine.open}/` })).toEqual({
      status: 200,
      text: 'open',
    });
    for (const url of [`http://${host}:${machine.other}/`, `http://${METADATA}/`, 'http://example.com/']) {
      await refused(probe, url);
    }
    const decisions = await bench.runtime.traffic(name);
    expect(decisions).toContainEqual(
      expect.objectContaining({ decision: 'allowed', host, port: machine.open, via: 'proxy' }),
    );
    expect(decisions).toContainEqual(
      expect.objectContaining({ decision: 'denied', host, port: machine.other }),
    );
    expect(decisions).toContainEqual(
      expect.objectContaining({ decision: 'denied', host: METADATA, never: true }),
    );
    expect(decisions).toContainEqual(expect.objectContaining({ decision: 'denied', host: 'example.com' }));
  });

  test('has no way around its gateway, by address, by socket or by name', async () => {
    const { probe } = await bench.running(isolated({ allowAll: true, hosts: [host] }));
    for (const where of [
      { host, port: machine.open },
      { host: '127.0.0.1', port: machine.open },
      { host: '192.0.2.1', port: 80 },
      { host: '2001:db8::1', port: 80 },
      { path: ABSTRACT },
    ]) {
      await expect(probe.call('probe/connect', where), JSON.stringify(where)).rejects.toThrow();
    }
  });

  test('asks nobody for names that its profile does not list', async () => {
    const { name, probe } = await bench.running(isolated({ hosts: ['listed.example'], ports: [443] }));
    await expect(probe.call('probe/lookup', { name: 'secret.tunnel.example' })).rejects.toThrow(/ENOTFOUND/);
    expect(await probe.call('probe/lookup', { name: 'listed.example' })).toHaveLength(1);
    expect(await bench.runtime.traffic(name)).toContainEqual(
      expect.objectContaining({ decision: 'denied', host: 'secret.tunnel.example', via: 'dns' }),
    );
  });

  test('reaches nothing of this machine where its profile allows every host', async () => {
    const { probe } = await bench.running(isolated({ allowAll: true }));
    for (const url of [`http://${host}:${machine.open}/`, 'http://localhost.:1/', `http://${METADATA}/`]) {
      await refused(probe, url);
    }
  });
}

function ingressContract(bench: ContractBench, machine: MachineServers): void {
  test('is reached over its port, by the names that it goes by and no others, while it reaches nobody', async () => {
    const [hostPort, inside] = [await freePort(), await freePort()];
    const ports = [{ hostIp: '127.0.0.1', hostPort, containerPort: inside }];
    const { probe } = await bench.running(isolated({}, { ports }));
    const served = { port: inside, ...(bench.runtime.reachesLoopback && { host: '127.0.0.1' }) };
    expect(await probe.call('probe/serve', served)).toBe('listening');
    expect(await ask(hostPort)).toEqual({ status: 200, text: `asked as 127.0.0.1:${hostPort}` });
    expect(await ask(hostPort, 'evil.example')).toMatchObject({ status: 403 });
    await refused(probe, `http://${machine.host}:${machine.open}/`);
  });

  test('begins its list of decisions anew with each start, and has none without a gateway', async () => {
    const { name, probe } = await bench.running(isolated({}));
    await refused(probe, 'http://example.com/');
    expect(await bench.runtime.traffic(name)).not.toEqual([]);
    probe.close();
    await bench.runtime.stop(name, 0);
    await bench.runtime.start(name);
    expect(await bench.runtime.traffic(name)).toEqual([]);
    const { name: without } = await bench.running({ network: 'none' });
    expect(await bench.runtime.traffic(without)).toEqual([]);
  });
}

/** A proxy says no with a status, or there is no way at all. */
async function refused(probe: ProbeCaller, url: string): Promise<void> {
  const answer = await probe.call('probe/fetch', { url }).catch(() => ({ status: 403 }));
  expect(answer, url).toMatchObject({ status: 403 });
}

function ask(
  port: number,
  name = `127.0.0.1:${port}`,
): Promise<{ status: number | undefined; text: string }> {
  return new Promise((resolve, reject) => {
    const asking = request({ host: '127.0.0.1', port, headers: { host: name } }, (response) => {
      let text = '';
      response.on('data', (chunk) => (text += String(chunk)));
      response.once('end', () => resolve({ status: response.statusCode, text }));
    });
    asking.once('error', reject).end();
  });
}

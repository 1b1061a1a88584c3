import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { EngineClient } from '@skep/cli/runtime/docker/client.ts';
import { DockerRuntime } from '@skep/cli/runtime/docker/docker-runtime.ts';
import { EXTERNAL_NETWORK } from '@skep/cli/runtime/docker/network.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { engine, ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { testEnvironment } from './runtimes.ts';

const engineThere = await component('private-engine');

/** Answers every call with the address of its gateway. The kernel writes its bytes in hexadecimal, the last one first. */
const GATEWAY_SERVER = `#!/bin/sh
while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\\([0-9]*\\).*/\\1/p')
  hex=$(awk '$2 == "00000000" { print $3 }' /proc/net/route)
  bytes=$(printf '%s' "$hex" | sed 's/\\(..\\)\\(..\\)\\(..\\)\\(..\\)/0x\\4 0x\\3 0x\\2 0x\\1/')
  printf '{"jsonrpc":"2.0","id":%s,"result":"%d.%d.%d.%d"}\\n' "$id" $bytes
done
`;

describe.skipIf(!engineThere.available)(title('the network that workloads share', engineThere), () => {
  let own: PrivateEngine;
  let names: string[];
  let reference: string;
  let runtime: Runtime;

  // An engine of its own: others must not find their network gone.
  beforeAll(async () => {
    own = privateEngine();
    await own.start();
    vi.stubEnv('DOCKER_HOST', `unix://${own.socket}`);
    reference = await ensureTinyImage(GATEWAY_SERVER);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await own.end();
  });
  beforeEach(() => {
    names = [];
    runtime = open();
  });
  afterEach(async () => {
    await Promise.all(names.map((name) => open().remove(name)));
    expect(await networks()).toEqual([]);
  });

  /** An adapter with a connection of its own, as another process would have. */
  const open = (): Runtime =>
    new DockerRuntime(
      new EngineClient({ kind: 'unix', path: own.socket }),
      testEnvironment({ dataDir: tmpdir(), cacheDir: tmpdir() }),
    );

  function spec(): WorkloadSpec {
    const name = `net-${randomBytes(4).toString('hex')}`;
    names.push(name);
    const empty = { args: [], env: {}, mounts: [], ports: [], privileged: false };
    return {
      ...empty,
      name,
      reference,
      labels: { 'skep.test': 'runtime' },
      stdio: true,
      network: 'bridge',
    };
  }

  async function starts(on: Runtime, wanted: WorkloadSpec): Promise<unknown> {
    await on.create(wanted);
    return answers(on, wanted.name);
  }

  async function answers(on: Runtime, name: string): Promise<unknown> {
    await on.start(name);
    const probe = new ProbeCaller(await on.attach(name));
    const gateway = await probe.call('gateway');
    probe.close();
    return gateway;
  }

  test('lets eight programs that make their first workload at once all start it', async () => {
    const gateways = await Promise.all(Array.from({ length: 8 }, () => starts(open(), spec())));
    for (const gateway of gateways) expect(gateway).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  test('works beside networks of the same name, takes the oldest, and removes what nobody uses', async () => {
    const first = await twin();
    await twin();
    await twin();
    const wanted = spec();
    await starts(runtime, wanted);
    expect(await networkOf(wanted.name)).toBe(first);
  });

  test('starts a workload whose network was removed behind its back', async () => {
    const wanted = spec();
    await runtime.create(wanted);
    await engine('DELETE', `/networks/${(await networkOf(wanted.name)) ?? ''}`);
    expect(await answers(runtime, wanted.name)).toMatch(/\d/);
    await runtime.stop(wanted.name, 1000);
    await engine('DELETE', `/networks/${(await networkOf(wanted.name)) ?? ''}`);
    expect(await answers(runtime, wanted.name)).toMatch(/\d/);
  });

  test('does not put a workload on the shared network when the one it asked for is missing', async () => {
    const wanted = { ...spec(), network: 'skep-test-no-such-network' };
    await expect(starts(runtime, wanted)).rejects.toMatchObject({
      message: expect.stringContaining('skep-test-no-such-network'),
    });
  });
});

async function networks(): Promise<{ readonly Id: string }[]> {
  const filters = encodeURIComponent(JSON.stringify({ name: [EXTERNAL_NETWORK] }));
  return JSON.parse((await engine('GET', `/networks?filters=${filters}`)).text) as { readonly Id: string }[];
}

/** Makes what two programs at once can leave on an older engine; its id. */
async function twin(): Promise<string> {
  const body = { Name: EXTERNAL_NETWORK, CheckDuplicate: false, Labels: { 'skep.managed': 'true' } };
  const made = await engine('POST', '/networks/create', body);
  if (made.status !== 201) throw new Error(`the engine made no second network: ${made.text}`);
  return (JSON.parse(made.text) as { readonly Id: string }).Id;
}

async function networkOf(container: string): Promise<string | undefined> {
  const { text } = await engine('GET', `/containers/${container}/json`);
  const { NetworkSettings } = JSON.parse(text) as {
    NetworkSettings: { Networks: Record<string, { NetworkID: string }> };
  };
  return NetworkSettings.Networks[EXTERNAL_NETWORK]?.NetworkID;
}

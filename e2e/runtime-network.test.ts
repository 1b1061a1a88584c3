import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { EngineClient } from '@skep/cli/runtime/docker/client.ts';
import { DockerRuntime } from '@skep/cli/runtime/docker/docker-runtime.ts';
import { EXTERNAL_NETWORK } from '@skep/cli/runtime/docker/network.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { engine, ensureScriptImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { testEnvironment } from './runtimes.ts';

const engineThere = await component('engine');

describe.skipIf(!engineThere.available)(title('the network that workloads share', engineThere), () => {
  let names: string[];
  let reference: string;
  let runtime: Runtime;

  beforeEach(async () => {
    names = [];
    const script = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');
    reference = await ensureScriptImage('skep-test/probe:1', script);
    runtime = open();
    // Takes an unused network away, so that the tests begin without one unless somebody else works here.
    await runtime.remove('skep-test-nobody');
  });
  afterEach(async () => {
    await Promise.all(names.map((name) => open().remove(name)));
    expect(await unusedNetworks()).toEqual([]);
  });

  /** An adapter with a connection of its own, as another process would have. */
  const open = (): Runtime =>
    new DockerRuntime(
      new EngineClient({ kind: 'unix', path: engineSocket() }),
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
    const gateway = await probe.call('probe/gateway');
    probe.close();
    return gateway;
  }

  test('lets eight programs that make their first workload at once all start it', async () => {
    const gateways = await Promise.all(Array.from({ length: 8 }, () => starts(open(), spec())));
    for (const gateway of gateways) expect(gateway).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
  });

  test('works beside networks of the same name, takes the oldest, and removes what nobody uses', async () => {
    // Somebody else's, when somebody else works here.
    const [known] = await networks();
    const first = await twin();
    await twin();
    await twin();
    const wanted = spec();
    await starts(runtime, wanted);
    expect(await networkOf(wanted.name)).toBe(known?.Id ?? first);
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

async function unusedNetworks(): Promise<string[]> {
  const unused: string[] = [];
  for (const { Id } of await networks()) {
    const filters = encodeURIComponent(JSON.stringify({ network: [Id] }));
    const users = JSON.parse((await engine('GET', `/containers/json?all=1&filters=${filters}`)).text);
    if ((users as unknown[]).length === 0) unused.push(Id);
  }
  return unused;
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

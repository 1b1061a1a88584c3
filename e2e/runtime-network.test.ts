import { randomBytes } from 'node:crypto';
import { tmpdir } from 'node:os';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { EngineClient } from '@skep/cli/runtime/docker/client.ts';
import { DockerRuntime } from '@skep/cli/runtime/docker/docker-runtime.ts';
import { SHARED_NETWORK } from '@skep/cli/runtime/docker/network/old-shared-network.ts';
import { makeNetwork } from '@skep/cli/runtime/docker/network/workload-networks.ts';
import { addressIn, parseRange } from '@skep/cli/runtime/docker/network/subnets.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { Spares } from '@skep/cli/runtime/spares.ts';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { engine, ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { TEST_TOKEN, testEnvironment } from './runtimes.ts';
import { openUser } from './skep.ts';

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

describe.skipIf(!engineThere.available)(title('the network of each workload', engineThere), () => {
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
  const open = (spares?: Spares): Runtime =>
    new DockerRuntime(new EngineClient({ kind: 'unix', path: own.socket }), {
      ...testEnvironment({ dataDir: tmpdir(), cacheDir: tmpdir() }),
      spares,
    });

  function spec(): WorkloadSpec {
    const name = `net-${randomBytes(4).toString('hex')}`;
    names.push(name);
    const empty = { args: [], env: {}, mounts: [], ports: [], privileged: false };
    return {
      ...empty,
      name,
      reference,
      labels: { 'skep.test': 'runtime', 'skep.state': TEST_TOKEN },
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

  test('lets eight programs that make a workload at once all start theirs, each on a network of its own', async () => {
    const gateways = await Promise.all(Array.from({ length: 8 }, () => starts(open(), spec())));
    for (const gateway of gateways) expect(gateway).toMatch(/^\d+\.\d+\.\d+\.\d+$/);
    expect(new Set(gateways).size).toBe(8);
  });

  test('is small, says whose it is, and keeps containers that somebody connects with it apart', async () => {
    const wanted = spec();
    await runtime.create(wanted);
    const [network] = await networks();
    expect(network).toMatchObject({
      Name: `skep-${wanted.name}`,
      Labels: { 'skep.managed': 'true', 'skep.name': wanted.name, 'skep.state': TEST_TOKEN },
      Options: { 'com.docker.network.bridge.enable_icc': 'false' },
      Internal: false,
      IPAM: { Config: [{ Subnet: expect.stringMatching(/\/29$/) }] },
    });
  });

  test('stays over stop and start, and goes with the workload', async () => {
    const wanted = spec();
    const first = await starts(runtime, wanted);
    await runtime.stop(wanted.name, 0);
    expect(await answers(runtime, wanted.name)).toBe(first);
    await runtime.remove(wanted.name);
    expect(await networks()).toEqual([]);
  });

  test('of two that begin in the same place takes the next, whoever else holds addresses there', async () => {
    const wanted = spec();
    const first = await starts(runtime, wanted);
    const subnet = (await networks())[0]?.IPAM.Config[0]?.Subnet ?? '';
    await runtime.remove(wanted.name);
    const body = { Name: 'skep-test-in-the-way', IPAM: { Config: [{ Subnet: subnet }] }, Internal: true };
    expect((await engine('POST', '/networks/create', body)).status).toBe(201);
    try {
      const second = await starts(runtime, wanted);
      expect(second).not.toBe(first);
      const range = parseRange(subnet) ?? { base: 0, prefix: 0 };
      expect(second).toBe(addressIn(range, 9));
    } finally {
      await engine('DELETE', '/networks/skep-test-in-the-way');
    }
  });

  test('is made again when it was removed behind the workload’s back', async () => {
    const wanted = spec();
    await runtime.create(wanted);
    await engine('DELETE', `/networks/skep-${wanted.name}`);
    expect(await answers(runtime, wanted.name)).toMatch(/\d/);
    await runtime.stop(wanted.name, 1000);
    await engine('DELETE', `/networks/skep-${wanted.name}`);
    expect(await answers(runtime, wanted.name)).toMatch(/\d/);
  });

  test('does not stay where the workload cannot be made, and what an interrupted attempt left is replaced', async () => {
    const wanted = spec();
    await expect(runtime.create({ ...wanted, reference: 'skep-test/not-there:1' })).rejects.toMatchObject({
      code: 'runtime/image-not-found',
    });
    expect(await networks()).toEqual([]);
    await leftover(wanted.name, TEST_TOKEN);
    await runtime.create(wanted);
    expect((await networks()).map(({ Name }) => Name)).toEqual([`skep-${wanted.name}`]);
  });

  test('is the only one, though the engine goes on with what a program asked for that was killed', async () => {
    const wanted = spec();
    // As engines before version 25 leave it where both are made at once, under one name or under two.
    await leftover(wanted.name, TEST_TOKEN, `skep-${wanted.name}-too`);
    await runtime.create(wanted);
    expect((await networks()).map(({ Name }) => Name)).toEqual([`skep-${wanted.name}`]);
  });

  test('that is left of interrupted attempts is swept, that of others and of workloads is not', async () => {
    const [wanted, other] = [spec(), spec()];
    await runtime.create(wanted);
    await leftover('interrupted', TEST_TOKEN);
    await leftover(other.name, 'somebody');
    try {
      await runtime.sweep();
      expect((await networks()).map(({ Name }) => Name).toSorted()).toEqual(
        [`skep-${wanted.name}`, `skep-${other.name}`].toSorted(),
      );
      await runtime.remove(other.name);
      expect((await networks()).map(({ Name }) => Name)).toContain(`skep-${other.name}`);
    } finally {
      await engine('DELETE', `/networks/skep-${other.name}`);
    }
  });

  test('is small enough for a hundred isolated workloads, with two each, on one engine', async () => {
    const client = new EngineClient({ kind: 'unix', path: own.socket });
    const maker = { client, randomId: () => randomBytes(8).toString('hex') };
    const left = Array.from({ length: 100 }, (_, index) => `many-${index}`).values();
    // As many programs at once as commands work on workloads.
    await Promise.all(
      Array.from({ length: 8 }, async () => {
        for (const name of left) {
          const wish = { name, owner: TEST_TOKEN };
          const { id } = await makeNetwork(maker, { ...wish, kind: 'outward' });
          await makeNetwork(maker, { ...wish, kind: 'internal', outward: id });
        }
      }),
    );
    const subnets = (await networks()).map(({ IPAM }) => IPAM.Config[0]?.Subnet);
    expect(new Set(subnets).size).toBe(200);
    await runtime.sweep();
    expect(await networks()).toEqual([]);
  }, 300_000);

  test('has another name where somebody else has that one', async () => {
    const wanted = spec();
    const body = { Name: `skep-${wanted.name}`, Internal: true, CheckDuplicate: true };
    const theirs = await engine('POST', '/networks/create', body);
    try {
      expect(await starts(runtime, wanted)).toMatch(/\d/);
      expect((await networks())[0]?.Name).toMatch(new RegExp(`^skep-${wanted.name}-\\w{8}$`));
    } finally {
      await engine('DELETE', `/networks/${(JSON.parse(theirs.text) as { Id: string }).Id}`);
    }
  });

  test('is not given to a workload that asked for another one, which is missing', async () => {
    const wanted = { ...spec(), network: 'skep-test-no-such-network' };
    await expect(starts(runtime, wanted)).rejects.toMatchObject({
      message: expect.stringContaining('skep-test-no-such-network'),
    });
  });

  test('may be one that was made ahead: each goes to one workload, and with it', async () => {
    const spares = new Spares();
    const [hosting, first, ...wanted] = [open(spares), spec(), spec(), spec()];
    await starts(hosting, first);
    await hosting.makeSpare?.();
    const [ahead] = (await networks()).filter(({ Name }) => Name.startsWith('skep-spare-'));
    const gateways = await Promise.all(wanted.map((one) => starts(hosting, one)));
    expect(new Set(gateways).size).toBe(2);
    const users = await engine('GET', `/networks/${ahead?.Id ?? ''}`);
    expect(Object.keys((JSON.parse(users.text) as { Containers: object }).Containers)).toHaveLength(1);
    for (const { name } of wanted) await hosting.remove(name);
    expect((await networks()).map(({ Name }) => Name)).toEqual([`skep-${first.name}`]);
  });

  test('that one program has made ahead is no rubbish to another, as long as that one runs', async () => {
    const running = new Set([1, 2]);
    const [one, other] = [1, 2].map((pid) => {
      const isAlive = (maker: { readonly pid: number }): boolean => running.has(maker.pid);
      return open(new Spares({ self: { pid, started: 'now' }, isAlive }));
    });
    const ahead = async (): Promise<number> =>
      (await networks()).filter(({ Name }) => Name.startsWith('skep-spare-')).length;
    await one?.makeAhead?.();
    await other?.makeAhead?.();
    expect(await ahead()).toBe(2);
    running.delete(1);
    const wanted = spec();
    await other?.create(wanted);
    await other?.makeAhead?.();
    expect(await ahead()).toBe(2);
    await runtime.remove(wanted.name);
    await runtime.sweep();
  });

  test('that was made ahead is replaced when it was removed behind the workload’s back, and swept when it is left', async () => {
    const spares = new Spares();
    const [hosting, first, second] = [open(spares), spec(), spec()];
    await hosting.create(first);
    await hosting.makeSpare?.();
    await hosting.create(second);
    await hosting.makeSpare?.();
    const ahead = (await networks()).filter(({ Name }) => Name.startsWith('skep-spare-'));
    expect(ahead).toHaveLength(2);
    await runtime.sweep();
    const [used, ...others] = (await networks()).filter(({ Name }) => Name.startsWith('skep-spare-'));
    expect(others).toEqual([]);
    await engine('DELETE', `/networks/${used?.Id ?? ''}`);
    expect(await answers(hosting, second.name)).toMatch(/\d/);
  });

  test('is made ahead by a supervisor that hosts containers; what a killed one leaves goes, and nothing stays', async () => {
    const user = openUser({ SKEP_DOCKER_SOCKET: own.socket, SKEP_RUNTIME: 'docker' });
    const ahead = async (): Promise<readonly string[]> => {
      const spares = (await networks()).filter(({ Name }) => Name.startsWith('skep-spare-'));
      const { text } = await engine('GET', '/containers/json?all=1');
      const workloads = (JSON.parse(text) as { readonly Labels: Readonly<Record<string, string>> }[])
        .map(({ Labels }) => Labels)
        .filter((labels) => labels['skep.auxiliary-workload'] === undefined);
      const used = new Set(workloads.map((labels) => labels['skep.network']));
      return spares.map(({ Name }) => Name).filter((name) => !used.has(name));
    };
    const run = async (name: string): Promise<void> =>
      expect(await user.skep(['run', reference, '--name', name, '--no-check'])).toMatchObject({ code: 0 });
    try {
      await run('one');
      await vi.waitFor(async () => expect(await ahead()).toHaveLength(1), 30_000);
      const [left] = await ahead();
      await user.killSupervisor();
      await run('two');
      await vi.waitFor(async () => {
        expect(await ahead()).toHaveLength(1);
        expect(await ahead()).not.toContain(left);
      }, 5_000);
      expect(await user.skep(['rm', 'one', 'two'])).toMatchObject({ code: 0 });
      expect(await networks()).toEqual([]);
    } finally {
      await user.end();
    }
  });

  test('lets a workload of an earlier version start on the network that all shared, which goes with the last one', async () => {
    const ids = [await shared(), await shared()];
    const [old, later] = [spec(), spec()];
    for (const [index, { name }] of [old, later].entries()) await olderContainer(name, ids[index] ?? '');
    expect(await answers(runtime, old.name)).toMatch(/\d/);
    // Of two of one name nothing can be told by name.
    await engine('DELETE', `/networks/${ids[1] ?? ''}`);
    expect(await answers(runtime, later.name)).toMatch(/\d/);
    expect((await networks()).map(({ Name }) => Name).toSorted()).toEqual(
      [SHARED_NETWORK, `skep-${later.name}`].toSorted(),
    );
    await runtime.remove(later.name);
    expect((await networks()).map(({ Id }) => Id)).toEqual([ids[0]]);
    await runtime.remove(old.name);
    expect(await networks()).toEqual([]);
  });

  /** As versions made it that had one network for all. */
  async function olderContainer(name: string, network: string): Promise<void> {
    const body = {
      Image: reference,
      Labels: { 'skep.managed': 'true', 'skep.name': name },
      OpenStdin: true,
      HostConfig: { NetworkMode: network },
      NetworkingConfig: { EndpointsConfig: { [network]: { NetworkID: network } } },
    };
    expect((await engine('POST', `/containers/create?name=${name}`, body)).status).toBe(201);
  }
});

interface Network {
  readonly Id: string;
  readonly Name: string;
  readonly IPAM: { readonly Config: readonly { readonly Subnet: string }[] };
}

async function networks(): Promise<readonly Network[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: ['skep.managed=true'] }));
  return JSON.parse((await engine('GET', `/networks?filters=${filters}`)).text) as Network[];
}

/** What a program that was killed between two steps leaves. */
async function leftover(workload: string, owner: string, called = `skep-${workload}`): Promise<void> {
  const Labels = {
    'skep.managed': 'true',
    'skep.name': workload,
    'skep.state': owner,
    'skep.network': 'outward',
  };
  const made = await engine('POST', '/networks/create', { Name: called, Labels });
  expect(made.status).toBe(201);
}

/** The network that all workloads were on in earlier versions; older engines could have several. */
async function shared(): Promise<string> {
  const body = { Name: SHARED_NETWORK, CheckDuplicate: false, Labels: { 'skep.managed': 'true' } };
  const made = await engine('POST', '/networks/create', body);
  if (made.status !== 201) throw new Error(`the engine made no network: ${made.text}`);
  return (JSON.parse(made.text) as { readonly Id: string }).Id;
}

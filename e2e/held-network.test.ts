import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from 'vitest';
import { ContractBench, forever } from '@skep/cli/runtime/contract/bench.ts';
import { confinementContract } from '@skep/cli/runtime/contract/confinement.ts';
import { eventsContract } from '@skep/cli/runtime/contract/events.ts';
import { lifeContract } from '@skep/cli/runtime/contract/life.ts';
import { limitsContract } from '@skep/cli/runtime/contract/limits.ts';
import { logsContract } from '@skep/cli/runtime/contract/logs.ts';
import { networkContract } from '@skep/cli/runtime/contract/network.ts';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { stdioContract } from '@skep/cli/runtime/contract/stdio.ts';
import { EngineClient } from '@skep/cli/runtime/docker/client.ts';
import { DockerRuntime } from '@skep/cli/runtime/docker/docker-runtime.ts';
import { makeSpare } from '@skep/cli/runtime/docker/network/spare-network.ts';
import { STDIO_SPEC } from '@skep/cli/runtime/doubles/stdio-spec.ts';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { Spares } from '@skep/cli/runtime/spares.ts';
import { isStuck } from '@skep/cli/runtime/stuck.ts';
import { freePort } from './fixtures/free-port.ts';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { engine, ensureScriptImage, ensureTinyImage } from './images.ts';
import { component, title } from './require.ts';
import { TEST_TOKEN, testEnvironment } from './runtimes.ts';
import { ask, openUser } from './skep.ts';

const engineThere = await component('engine');
const privateThere = await component('private-engine');

/** What was made ahead, as a supervisor has it. */
interface Ahead {
  readonly runtime: Runtime;
  readonly spares: Spares;
  /** Makes a network ahead, and waits until something holds it. */
  readonly make: () => Promise<void>;
}

function aheadOn(socket: string): Ahead {
  const client = new EngineClient({ kind: 'unix', path: socket });
  const spares = new Spares();
  const environment = { ...testEnvironment({ dataDir: tmpdir(), cacheDir: tmpdir() }), spares };
  const describeEngine = async () => (await client.call({ path: '/info' })).body;
  return {
    runtime: new DockerRuntime(client, environment),
    spares,
    async make() {
      const { randomId } = environment;
      const failed = (error: unknown): never => {
        throw error;
      };
      await makeSpare(
        { client, randomId, describe: describeEngine, holds: true, failed },
        spares,
        TEST_TOKEN,
      );
      await vi.waitFor(
        async () => expect((await spares.peek(`unix://${socket}`))?.holder).toBeDefined(),
        20_000,
      );
    },
  };
}

interface Container {
  readonly Id: string;
  readonly State: string;
  readonly Names: readonly string[];
  readonly Labels: Readonly<Record<string, string>>;
}

const listed = async <Kind>(path: string): Promise<Kind[]> => {
  const filters = encodeURIComponent(JSON.stringify({ label: [`skep.state=${TEST_TOKEN}`] }));
  return JSON.parse((await engine('GET', `${path}?all=1&filters=${filters}`)).text) as Kind[];
};
const holders = async (): Promise<Container[]> =>
  (await listed<Container>('/containers/json')).filter(
    ({ Labels }) => Labels['skep.auxiliary-workload'] === 'true',
  );
const networks = () => listed<{ readonly Id: string; readonly Name: string }>('/networks');
const inspected = async (container: string): Promise<unknown> =>
  JSON.parse((await engine('GET', `/containers/${container}/json`)).text);

describe.skipIf(!engineThere.available)(
  title('a container in a network that was held open', engineThere),
  () => {
    const probe = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');
    const { runtime, spares, make } = aheadOn('/var/run/docker.sock');
    const create = runtime.create.bind(runtime);
    const held: unknown[] = [];
    /** Each has a network that was made ahead, those that are to have none too, but where that is what is tested. */
    Object.assign(runtime, {
      async create(spec: WorkloadSpec) {
        const labels = { ...spec.labels, 'skep.state': TEST_TOKEN };
        const isAsked = expect.getState().currentTestName?.includes('"none"') === true;
        const network = spec.network === 'none' && !isAsked ? 'bridge' : spec.network;
        if (network === 'bridge') await make();
        await create({ ...spec, labels, network });
        if (network === 'bridge' && spec.ports.length === 0) held.push(await inspected(spec.name));
      },
    });
    const bench = new ContractBench({
      open: async () => runtime,
      probeServer: () => ensureScriptImage('skep-test/probe:held', probe),
      missing: { source: { kind: 'image', reference: '' }, code: '' },
      hold: undefined,
      leftovers: async () => [],
      close: async () => {},
    });
    beforeAll(() => bench.open());
    afterEach(async () => {
      for (const one of held.splice(0))
        expect(one).toHaveProperty('HostConfig.NetworkMode', expect.stringMatching(/^container:\w+$/));
      await bench.clear();
    });
    afterAll(async () => {
      await spares.close();
      expect([...(await holders()), ...(await networks())]).toEqual([]);
      await bench.close();
    });

    lifeContract(bench);
    stdioContract(bench);
    logsContract(bench);
    eventsContract(bench);
    limitsContract(bench);
    describe('confinement', () => confinementContract(bench));
    describe('network', () => networkContract(bench));
  },
);

describe.skipIf(!privateThere.available)(title('what holds the network of a container', privateThere), () => {
  let own: PrivateEngine;
  let reference: string;
  let ahead: Ahead;
  let names: string[];
  beforeAll(async () => {
    // An engine of its own: others must not find theirs killed.
    own = privateEngine();
    await own.start();
    vi.stubEnv('DOCKER_HOST', `unix://${own.socket}`);
    reference = await ensureTinyImage(TINY_SERVER);
  });
  afterAll(async () => {
    vi.unstubAllEnvs();
    await own.end();
  });
  beforeEach(() => {
    names = [];
    ahead = aheadOn(own.socket);
  });
  afterEach(async () => {
    for (const name of names) await ahead.runtime.remove(name);
    await ahead.spares.close();
    expect([...(await holders()), ...(await networks())]).toEqual([]);
  });

  /** One that runs, and has a holder. */
  async function running(
    more: Partial<WorkloadSpec> = {},
  ): Promise<{ name: string; holder: string; spec: WorkloadSpec }> {
    const name = `held-${randomBytes(4).toString('hex')}`;
    names.push(name);
    const spec = { ...STDIO_SPEC, name, reference, labels: { 'skep.state': TEST_TOKEN }, ...more };
    await ahead.make();
    const holder = (await ahead.spares.peek(`unix://${own.socket}`))?.holder ?? '';
    await ahead.runtime.create(spec);
    await answers(name);
    return { name, holder, spec };
  }

  async function answers(name: string): Promise<void> {
    await ahead.runtime.start(name);
    const probe = new ProbeCaller(await ahead.runtime.attach(name));
    expect(await probe.call('ping')).toEqual({});
    probe.close();
  }

  const stateOf = async (container: string): Promise<unknown> =>
    ((await inspected(container)) as { State?: { Status: string } }).State?.Status;

  test('may do nothing, is no workload, and goes where its own goes', async () => {
    const { name, holder } = await running();
    expect(await inspected(name)).toHaveProperty('HostConfig.NetworkMode', `container:${holder}`);
    expect(await inspected(holder)).toMatchObject({
      Config: { User: '65534:65534', Env: null, StopSignal: 'SIGKILL' },
      HostConfig: {
        CapDrop: ['ALL'],
        SecurityOpt: ['no-new-privileges'],
        ReadonlyRootfs: true,
        RestartPolicy: { Name: 'no' },
        Binds: null,
      },
      Mounts: [],
    });
    expect((await ahead.runtime.list()).map((one) => one.name)).toEqual([name]);
    await ahead.runtime.stop(name, 0);
    expect(await stateOf(holder)).toBe('exited');
    await answers(name);
    expect(await stateOf(holder)).toBe('running');
    await ahead.runtime.remove(name);
    expect([...(await holders()), ...(await networks())]).toEqual([]);
  });

  test('that ends takes its server along, which then starts in a network once more', async () => {
    const { name, holder } = await running();
    const ended = ahead.runtime.wait(name, forever());
    await engine('POST', `/containers/${holder}/kill`);
    expect(await ended).toBeGreaterThan(0);
    await answers(name);
    expect(await stateOf(holder)).toBe('running');
  });

  test('that was removed cannot be joined again, so its workload is made anew', async () => {
    const { name, holder, spec } = await running();
    const ended = ahead.runtime.wait(name, forever());
    await engine('DELETE', `/containers/${holder}?force=1`);
    await ended;
    const failed = await ahead.runtime.start(name).catch((error: unknown) => error);
    expect(failed).toMatchObject({
      code: 'runtime/start-failed',
      message: `workload "${name}" could not be started: the container that held its network was removed`,
    });
    expect(isStuck(failed)).toBe(true);
    await ahead.runtime.replace(spec);
    await answers(name);
  });

  test('gets another network where its own was removed while it was stopped', async () => {
    const { name, holder } = await running();
    await ahead.runtime.stop(name, 0);
    for (const { Id } of await networks()) await engine('DELETE', `/networks/${Id}`);
    await answers(name);
    expect((await networks()).map(({ Name }) => Name)).toEqual([`skep-${name}`]);
    expect(await inspected(holder)).toHaveProperty(['NetworkSettings', 'Networks', `skep-${name}`]);
  });

  test('is started before its server after an engine was killed', async () => {
    const { name, holder } = await running();
    await own.kill();
    await own.start();
    await vi.waitFor(async () => expect(await stateOf(name)).toBe('exited'), 30_000);
    await answers(name);
    expect(await stateOf(holder)).toBe('running');
  });

  test('is not for a server that publishes a port', async () => {
    const ports = [{ hostIp: '127.0.0.1', hostPort: await freePort(), containerPort: 8080 }];
    const { name, holder } = await running({ ports });
    await vi.waitFor(async () => expect(await holders()).toEqual([]), 20_000);
    const [network, ...others] = await networks();
    expect(others).toEqual([]);
    expect(await inspected(name)).toHaveProperty('HostConfig.NetworkMode', network?.Id);
    expect(await stateOf(holder)).toBeUndefined();
  });

  test('is left alone by whoever clears up as long as a container has joined it, running or not', async () => {
    const { name, holder } = await running();
    await ahead.make();
    await ahead.runtime.sweep();
    expect((await holders()).map(({ Id }) => Id)).toEqual([holder]);
    await ahead.runtime.stop(name, 0);
    await ahead.runtime.sweep();
    await answers(name);
  });

  test('is cleared away without its network, and where its workload was removed behind our back', async () => {
    const { name, holder, spec } = await running();
    await ahead.make();
    const left = (await networks()).find(({ Name }) => Name.startsWith('skep-spare-'));
    for (const { Id } of (await holders()).filter((one) => one.Id !== holder))
      await engine('POST', `/containers/${Id}/kill`);
    for (const { Id } of await networks()) await engine('DELETE', `/networks/${Id}`);
    expect(left).toBeDefined();
    await ahead.runtime.sweep();
    expect((await holders()).map(({ Id }) => Id)).toEqual([holder]);
    await engine('DELETE', `/containers/${name}?force=1`);
    await ahead.runtime.create(spec);
    expect((await networks()).map(({ Name }) => Name)).toEqual([`skep-${name}`]);
    expect(await holders()).toEqual([]);
  });

  test('is there for the second run of a user, is replaced when it is gone, and leaves nothing', async () => {
    const user = openUser({ SKEP_DOCKER_SOCKET: own.socket, SKEP_RUNTIME: 'docker' });
    const all = async (): Promise<Container[]> =>
      JSON.parse((await engine('GET', '/containers/json?all=1')).text) as Container[];
    const unused = async (): Promise<readonly string[]> => {
      const containers = await all();
      const used = await Promise.all(
        containers.map(async ({ Id }) => (await inspected(Id)) as { HostConfig: { NetworkMode: string } }),
      );
      const joined = new Set(used.map(({ HostConfig }) => HostConfig.NetworkMode));
      return containers
        .filter(
          ({ Id, State, Labels }) =>
            State === 'running' &&
            Labels['skep.auxiliary-workload'] === 'true' &&
            !joined.has(`container:${Id}`),
        )
        .map(({ Id }) => Id);
    };
    const ready = () =>
      vi.waitFor(
        async () => {
          const [holder, ...others] = await unused();
          expect(others).toEqual([]);
          expect(holder).toBeDefined();
          return holder ?? '';
        },
        { timeout: 20_000, interval: 200 },
      );
    const run = async (name: string): Promise<string> => {
      const { code, stdout, stderr } = await user.skep(['run', reference, '--name', name]);
      expect(code, stderr).toBe(0);
      return stdout.trim();
    };
    try {
      await run('one');
      const holder = await ready();
      const url = await run('two');
      expect(await inspected('two')).toHaveProperty('HostConfig.NetworkMode', `container:${holder}`);
      const { stdout } = await user.skep(['list', '--all', '--format', 'json']);
      expect((JSON.parse(stdout) as { name: string }[]).map(({ name }) => name).toSorted()).toEqual([
        'one',
        'two',
      ]);

      const next = await ready();
      await engine('DELETE', `/containers/${holder}?force=1`);
      await vi.waitFor(
        async () =>
          expect(await inspected('two')).toMatchObject({
            State: { Running: true },
            HostConfig: { NetworkMode: `container:${next}` },
          }),
        { timeout: 30_000, interval: 200 },
      );
      await vi.waitFor(async () => expect(await ask(url, 'ping')).toMatchObject({ result: {} }), 10_000);

      expect(await user.skep(['stop', 'two'])).toMatchObject({ code: 0 });
      expect(await stateOf(next)).toBe('exited');
      expect(await user.skep(['start', 'two'])).toMatchObject({ code: 0 });
      expect(await stateOf(next)).toBe('running');

      await run('three');
      const left = await ready();
      await user.killSupervisor();
      await run('four');
      await vi.waitFor(async () => expect(await stateOf(left)).toBeUndefined(), 20_000);
      await ready();
      expect(await user.skep(['rm', '--all'])).toMatchObject({ code: 0 });
      await vi.waitFor(async () => expect(await all()).toEqual([]), 10_000);
    } finally {
      await user.end();
    }
    expect(await all()).toEqual([]);
  }, 120_000);
});

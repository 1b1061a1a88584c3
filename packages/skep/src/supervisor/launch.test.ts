import { createServer, type AddressInfo, type Server } from 'node:net';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import type { Runtime, WorkloadSpec } from '../runtime/runtime.ts';
import { STUCK } from '../runtime/stuck.ts';
import type { StartEvent } from './protocol.ts';
import { forwardTarget, launch, launchAhead } from './launch.ts';
import { toWorkloadSpec } from './workload-spec.ts';

let busy: Server;
let port: number;
beforeEach(async () => {
  busy = createServer();
  await new Promise<void>((resolve) => void busy.listen(0, '127.0.0.1', resolve));
  port = (busy.address() as AddressInfo).port;
});
afterEach(() => new Promise((resolve) => void busy.close(resolve)));

const http = (target_port: number, changes: object = {}) =>
  decodeRunConfig(
    { name: 'web', image: 'fake:1', transport: 'streamable-http', target_port, ...changes },
    'test',
  );
/** With `--network host`. */
const inMachines = (target_port: number) =>
  http(target_port, { permission_profile: { network: { mode: 'host' } } });
const launching = (runtime: Runtime) => ({
  runtime,
  owner: 'me',
  random: (min: number) => min,
  secrets: async () => ({}),
  overlays: async () => [],
});

/** Starts nothing before it has made it anew. */
class Stuck extends MemoryRuntime {
  isStuck = false;
  override async start(name: string) {
    if (this.isStuck) throw new SkepError('runtime/start-failed', { detail: STUCK });
    await super.start(name);
  }
  override replace(spec: WorkloadSpec) {
    this.isStuck = false;
    return super.replace(spec);
  }
}

describe('an HTTP server in the network of the machine', () => {
  test('is not started on a port that another program has, which would be taken for it', async () => {
    const runtime = new MemoryRuntime();
    await expect(launch(inMachines(port), launching(runtime))).rejects.toMatchObject({
      code: 'run/port-busy',
      message: expect.stringContaining(String(port)),
    });
    expect(await runtime.inspect('web')).toBeUndefined();
  });

  test('is told to listen on loopback only', () => {
    const spec = specOn({ reachesLoopback: false }, inMachines(3000));
    expect(spec.env).toMatchObject({ MCP_HOST: '127.0.0.1' });
    expect(spec.ports).toEqual([]);
  });
});

test('a server that cannot be looked at after its start does not run on', async () => {
  class Blind extends MemoryRuntime {
    looks = 0;
    override inspect(name: string) {
      this.looks += 1;
      return this.looks === 2 ? Promise.reject(new TypeError('no engine')) : super.inspect(name);
    }
  }
  const runtime = new Blind();
  await expect(launch(http(port), launching(runtime))).rejects.toThrow('no engine');
  expect(await runtime.inspect('web')).toBeUndefined();
});

describe('what is begun for another process that takes it over', () => {
  /** Like an engine: whoever asks waits for the one start. */
  class Engine extends MemoryRuntime {
    readonly sharesStart?: () => boolean;
    asked = 0;
    readonly #started = Promise.withResolvers<void>();
    constructor(shares: boolean) {
      super();
      if (shares) this.sharesStart = () => true;
    }
    override async start(name: string): Promise<void> {
      this.asked += 1;
      await this.#started.promise;
      return super.start(name);
    }
    answer(): void {
      this.#started.resolve();
    }
    fail(why: Error): void {
      this.#started.reject(why);
    }
  }

  test('is handed over while it starts, made once, and counts as made by who takes it', async () => {
    const runtime = new Engine(true);
    await launchAhead(http(port), launching(runtime));
    expect((await runtime.inspect('web'))?.state).toBe('created');
    const taken = launch(http(port), { ...launching(runtime), begun: true });
    await vi.waitFor(() => expect(runtime.asked).toBe(2));
    runtime.answer();
    expect(await taken).toMatchObject({ made: true, observed: { state: 'running' } });
  });

  test('is heard of by who takes it, where it does not start, and nothing of it stays', async () => {
    const runtime = new Engine(true);
    await launchAhead(http(port), launching(runtime));
    const taken = launch(http(port), { ...launching(runtime), begun: true });
    runtime.fail(new SkepError('runtime/start-failed', { message: 'no such program' }));
    await expect(taken).rejects.toThrow('no such program');
    expect(await runtime.inspect('web')).toBeUndefined();
  });

  test('is handed over when it has started, where only one may ask for that', async () => {
    const runtime = new Engine(false);
    const ahead = launchAhead(http(port), launching(runtime));
    await vi.waitFor(() => expect(runtime.asked).toBe(1));
    runtime.answer();
    await ahead;
    const { made } = await launch(http(port), { ...launching(runtime), begun: true });
    expect([made, runtime.asked]).toEqual([true, 1]);
  });

  test('is handed over when it has started, where it was there before and may have to be made anew', async () => {
    const before = new Engine(true);
    before.answer();
    await launch(http(port), launching(before));
    await before.stop('web');
    const again = Promise.withResolvers<void>();
    before.start = () => again.promise;
    let isOver = false;
    const ahead = launchAhead(http(port), launching(before)).then(() => (isOver = true));
    // Whatever is done without the engine is done by then.
    for (let turns = 0; turns < 50; turns += 1) await new Promise(setImmediate);
    expect(isOver).toBe(false);
    again.resolve();
    await ahead;
  });

  test('is made anew where another description made it', async () => {
    const runtime = new Engine(true);
    await launchAhead(http(port), launching(runtime));
    runtime.answer();
    const { made } = await launch(http(port + 1), { ...launching(runtime), begun: true });
    expect(made).toBe(false);
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
    [true, '127.0.0.1'],
    [false, '0.0.0.0'],
  ])('is told to listen where the proxy reaches it: its loopback %s, on %s', (reachesLoopback, address) => {
    expect(specOn({ reachesLoopback }).env).toMatchObject({ MCP_HOST: address });
  });
});

describe('the proxy of a server forwards', () => {
  const made = (labels: Readonly<Record<string, string>> = {}) =>
    ({ name: 'web', state: 'running', reference: 'x', createdAt: new Date(0), labels }) as const;
  const onHost = { permission_profile: { network: { mode: 'host' } } };
  const published = { 'skep.host-port': '20001' };
  test.each<readonly [config: object, labels: Readonly<Record<string, string>>, target: string | undefined]>([
    [{ transport: 'stdio' }, {}, undefined],
    // Its port of the machine is bound to loopback, and leads to its gateway where it has one.
    [{}, published, 'http://127.0.0.1:20001/'],
    [{ isolate_network: true }, published, 'http://127.0.0.1:20001/'],
    [{ transport: 'sse' }, published, 'http://127.0.0.1:20001/'],
    [{ target_host: 'db.example' }, published, 'http://127.0.0.1:20001/'],
    // In the network of the machine its port is that of the machine.
    [onHost, {}, 'http://127.0.0.1:3000/'],
    [{ ...onHost, target_host: '10.0.0.5' }, {}, 'http://10.0.0.5:3000/'],
    [{ ...onHost, target_host: '' }, {}, 'http://127.0.0.1:3000/'],
  ])('of %j with %j to %s', (changes, labels, target) => {
    expect(forwardTarget(http(3000, changes), made(labels))?.href).toBe(target);
  });
});

function specOn(runtime: Pick<Runtime, 'reachesLoopback'>, config = http(3000)): WorkloadSpec {
  return toWorkloadSpec(config, { owner: 'me', runtime: { keepsSecrets: true, ...runtime } });
}

describe('a start of what is there already', () => {
  const config = decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'stdio' }, 'test');
  const warned: string[] = [];
  const tell = (event: StartEvent): void => void (event.kind === 'warning' && warned.push(event.text));
  beforeEach(() => void warned.splice(0));

  async function stopped<Kind extends MemoryRuntime>(runtime: Kind): Promise<Kind> {
    expect(await launch(config, launching(runtime))).toMatchObject({ made: true });
    await runtime.stop('a1');
    runtime.writing.add('a1');
    return runtime;
  }

  test('takes it up as it is, while its image is the same', async () => {
    const runtime = await stopped(new MemoryRuntime());
    expect(await launch(config, { ...launching(runtime), tell, renew: true })).toMatchObject({ made: false });
    expect(runtime.startsOf('a1')).toBe(2);
    expect(warned).toEqual([]);
  });

  test('makes it anew from an image that was built again, and says what is lost', async () => {
    const runtime = await stopped(new MemoryRuntime());
    runtime.outdated.add('a1');
    expect(await launch(config, { ...launching(runtime), tell, renew: true })).toMatchObject({ made: false });
    expect(runtime.startsOf('a1')).toBe(1);
    expect(warned).toEqual([expect.stringContaining('files that the server had written inside are gone')]);
  });

  test('makes anew what the runtime cannot start any more, and says what is lost', async () => {
    const runtime = await stopped(new Stuck());
    runtime.isStuck = true;
    expect(await launch(config, { ...launching(runtime), tell })).toMatchObject({ made: false });
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
    expect(warned).toEqual([expect.stringContaining('files that the server had written inside are gone')]);
  });

  test('makes anew what was made a moment ago and cannot be started, which has lost nothing', async () => {
    const runtime = new Stuck();
    runtime.isStuck = true;
    expect(await launch(config, { ...launching(runtime), tell })).toMatchObject({ made: true });
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'running' });
    expect(warned).toEqual([]);
  });

  test('leaves that to whoever takes it over', async () => {
    const runtime = new Stuck();
    runtime.isStuck = true;
    const replace = vi.spyOn(runtime, 'replace');
    await expect(launchAhead(config, launching(runtime))).rejects.toMatchObject({
      code: 'runtime/start-failed',
    });
    expect(replace).not.toHaveBeenCalled();
  });

  test('that nobody asked for loses nothing to a new image', async () => {
    const runtime = await stopped(new MemoryRuntime());
    runtime.outdated.add('a1');
    await launch(config, { ...launching(runtime), tell });
    expect(runtime.startsOf('a1')).toBe(2);
    expect(warned).toEqual([]);
  });

  test('whose mount leads elsewhere by now does not happen, and what there was stays', async () => {
    const runtime = await stopped(new MemoryRuntime());
    const permission_profile = { read: ['/proc/self/exe:/data'] };
    const mount_sources = { '/proc/self/exe': '/where/it/led/once' };
    const starting = launch({ ...config, permission_profile, mount_sources }, launching(runtime));
    await expect(starting).rejects.toMatchObject({ code: 'run/not-granted' });
    expect(await runtime.inspect('a1')).toMatchObject({ state: 'exited' });
  });
});

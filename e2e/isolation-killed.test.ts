import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { beforeAll, describe, expect, test } from 'vitest';
import type { Runtime, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { engineSteps } from './fixtures/engine-steps.ts';
import { freePort } from './fixtures/free-port.ts';
import { engine, ensureScriptImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { openRuntime, TEST_TOKEN } from './runtimes.ts';
import { openUser } from './skep.ts';

// Whoever makes an isolated workload on an engine may be killed between any two of the things that it makes.

const engineThere = await component('engine');
const PROBE = path.join(import.meta.dirname, 'fixtures/probe-server.mjs');
const HOLDER = path.join(import.meta.dirname, 'runtime-holder.ts');
/** Two networks, the container, its gateway, which is connected and started, and the start of the server. */
const STEPS = 7;

describe.skipIf(!engineThere.available)(title('an isolated workload on an engine', engineThere), () => {
  let runtime: Runtime;
  let reference: string;
  beforeAll(async () => {
    runtime = await openRuntime('docker', { dataDir: tmpdir(), cacheDir: tmpdir() });
    reference = await ensureScriptImage('skep-test/killed:1', readFileSync(PROBE, 'utf8'));
  });

  async function spec(): Promise<WorkloadSpec> {
    const name = `killed-${randomBytes(4).toString('hex')}`;
    const ports = [{ hostIp: '127.0.0.1', hostPort: await freePort(), containerPort: 3000 }];
    const isolation = { workload: name, allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: false }; // prettier-ignore
    const labels = { 'skep.state': TEST_TOKEN };
    return { name, reference, args: [], env: {}, labels, stdio: true, mounts: [], network: 'bridge', isolation, ports, privileged: false }; // prettier-ignore
  }

  /** Makes and starts it in a process that is killed once the engine has carried out that step; how many it carried out. */
  async function makeAndKill(wanted: WorkloadSpec, step: number): Promise<number> {
    const ending = new AbortController();
    await using relay = await engineSteps(engineSocket(), step, () => ending.abort());
    const env = { ...process.env, DOCKER_HOST: `unix://${relay.socket}` };
    const args = [HOLDER, 'docker', tmpdir(), tmpdir(), JSON.stringify(wanted)];
    const maker = spawn(process.execPath, args, { env, stdio: ['ignore', 'pipe', 'inherit'] });
    const gone = once(maker, 'exit');
    ending.signal.addEventListener('abort', () => void maker.kill('SIGKILL'));
    // One that is not killed says that it is up.
    maker.stdout.once('data', () => ending.abort());
    await gone;
    return relay.made;
  }

  async function leftovers(name: string): Promise<readonly string[]> {
    const filters = encodeURIComponent(JSON.stringify({ label: [`skep.name=${name}`] }));
    const containers = await engine('GET', `/containers/json?all=1&filters=${filters}`);
    const networks = await engine('GET', `/networks?filters=${filters}`);
    const named = JSON.parse(networks.text) as { Name: string }[];
    return [
      ...(JSON.parse(containers.text) as { Names: string[] }[]).map(({ Names }) => Names[0] ?? ''),
      ...named.map(({ Name }) => Name),
    ];
  }

  test('is made in as many steps as these tests kill after', async () => {
    const wanted = await spec();
    try {
      expect(await makeAndKill(wanted, Infinity)).toBe(STEPS);
    } finally {
      await runtime.remove(wanted.name);
    }
    expect(await leftovers(wanted.name)).toEqual([]);
  });

  test.each(Array.from({ length: STEPS }, (_, at) => at + 1))(
    'leaves nothing that a sweep or its removal does not take, killed after step %i',
    async (step) => {
      const wanted = await spec();
      expect(await makeAndKill(wanted, step)).toBe(step);
      expect(await leftovers(wanted.name)).not.toEqual([]);
      await runtime.sweep();
      const isThere = (await runtime.inspect(wanted.name)) !== undefined;
      expect(isThere).toBe(step > 2);
      if (!isThere) return expect(await leftovers(wanted.name)).toEqual([]);
      // What is there can be started, with a gateway, whatever it lacked.
      await runtime.start(wanted.name);
      expect(await runtime.inspect(wanted.name)).toMatchObject({ state: 'running' });
      expect(await leftovers(wanted.name)).toHaveLength(4);
      await runtime.remove(wanted.name);
      return expect(await leftovers(wanted.name)).toEqual([]);
    },
  );

  test('is removed whole where a removal was killed after it had taken the server', async () => {
    const { name } = await spec();
    const user = openUser({ SKEP_RUNTIME: 'docker' });
    try {
      const run = await user.skep(['run', reference, '--name', name, '--isolate-network', '--no-check']);
      expect(run.code, run.stderr).toBe(0);
      await user.killSupervisor();
      await engine('DELETE', `/containers/${name}?force=1`);
      expect(await leftovers(name)).toHaveLength(3);
      expect(await user.skep(['rm', name])).toMatchObject({ code: 0 });
      expect(await leftovers(name)).toEqual([]);
    } finally {
      await user.end();
    }
  });

  test.each(['while it is waited for', 'before'])('is ended when its gateway was killed %s', async (when) => {
    const wanted = await spec();
    try {
      await runtime.create(wanted);
      await runtime.start(wanted.name);
      const kill = () => engine('POST', `/containers/skep-${wanted.name}-gateway/kill`);
      if (when === 'before') await kill();
      const ended = runtime.wait(wanted.name, AbortSignal.timeout(30_000));
      if (when !== 'before') await kill();
      await ended;
      expect(await runtime.inspect(wanted.name)).toMatchObject({ state: 'exited' });
      await runtime.start(wanted.name);
      expect(await leftovers(wanted.name)).toHaveLength(4);
    } finally {
      await runtime.remove(wanted.name);
    }
  });
});

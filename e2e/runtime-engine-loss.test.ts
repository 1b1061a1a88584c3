import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { EngineClient } from '@skep/cli/runtime/docker/client.ts';
import { DockerRuntime } from '@skep/cli/runtime/docker/docker-runtime.ts';
import type { Runtime } from '@skep/cli/runtime/runtime.ts';
import { ensureScriptImage } from './images.ts';
import { component, engineSocket, title } from './require.ts';
import { TEST_TOKEN, testEnvironment } from './runtimes.ts';

const engineThere = await component('engine');
/** Names on a shared engine must not meet those of another test run. */
const name = `engine-loss-${TEST_TOKEN}`;

/** The real engine behind a socket of the test's own, which can be cut as a crash would. */
class Relay {
  readonly #server = net.createServer((client) => this.#join(client));
  readonly #sockets = new Set<net.Socket>();

  listen(file: string): Promise<void> {
    return new Promise((resolve) => void this.#server.listen(file, resolve));
  }

  /** The socket stays in the file system and refuses, as after SIGKILL. */
  cut(): void {
    this.#server.close();
    for (const socket of this.#sockets) socket.destroy();
  }

  #join(client: net.Socket): void {
    const engine = net.connect(engineSocket());
    for (const [from, to] of [
      [client, engine],
      [engine, client],
    ] as const) {
      this.#sockets.add(from);
      from.on('error', () => to.destroy());
      from.pipe(to);
    }
  }
}

describe.skipIf(!engineThere.available)(title('an engine that goes away', engineThere), () => {
  let directory: string;
  let relay: Relay;
  let runtime: Runtime;
  const direct = () =>
    new DockerRuntime(new EngineClient({ kind: 'unix', path: engineSocket() }), environment());
  const environment = () => testEnvironment({ dataDir: directory, cacheDir: directory });

  beforeEach(async () => {
    directory = mkdtempSync(path.join(tmpdir(), 'skep-loss-'));
    relay = new Relay();
    const socket = path.join(directory, 'engine.sock');
    await relay.listen(socket);
    runtime = new DockerRuntime(new EngineClient({ kind: 'unix', path: socket }), environment());
    const script = readFileSync(path.join(import.meta.dirname, 'fixtures/probe-server.mjs'), 'utf8');
    const reference = await ensureScriptImage('skep-test/probe:1', script);
    const empty = { args: [], env: {}, mounts: [], ports: [], privileged: false };
    await runtime.create({
      ...empty,
      name,
      reference,
      labels: { 'skep.test': 'engine-loss' },
      stdio: true,
      network: 'none',
    });
  });
  afterEach(async () => {
    relay.cut();
    await direct().remove(name);
    rmSync(directory, { recursive: true, force: true });
  });

  test('ends the attachment, fails what waits, and every later call names the socket', async () => {
    const probe = new ProbeCaller(await runtime.attach(name));
    await runtime.start(name);
    await probe.call('ping');
    const waiting = runtime.wait(name, new AbortController().signal).catch((error: unknown) => error);
    const watching = lastError(runtime.events(new AbortController().signal));
    const logs = runtime.logs(name, { follow: true, signal: new AbortController().signal });
    const first = await logs[Symbol.asyncIterator]().next();
    expect(first.done).toBe(false);
    const following = lastError(logs);
    relay.cut();
    await probe.ended();
    const lost = { code: 'runtime/engine-unreachable', message: expect.stringContaining('engine.sock') };
    expect(await waiting).toMatchObject(lost);
    expect(await watching).toMatchObject(lost);
    expect(await following).toMatchObject(lost);
    await expect(runtime.inspect(name)).rejects.toMatchObject(lost);
    await expect(runtime.stop(name, 0)).rejects.toMatchObject(lost);
    await expect(runtime.list()).rejects.toMatchObject(lost);
    expect(await direct().inspect(name)).toMatchObject({ state: 'running' });
  });

  test('takes a write after the cut without bringing the process down', async () => {
    const attached = await runtime.attach(name);
    await runtime.start(name);
    relay.cut();
    await new Promise((resolve) => attached.stdout.resume().once('close', resolve));
    const outcome = await new Promise((resolve) => void attached.stdin.write('{}\n', resolve));
    expect(outcome).toBeInstanceOf(Error);
  });
});

async function lastError(chunks: AsyncIterable<unknown>): Promise<unknown> {
  const seen: unknown[] = [];
  try {
    for await (const chunk of chunks) seen.push(chunk);
    return undefined;
  } catch (error) {
    return error;
  }
}

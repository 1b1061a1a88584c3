import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { stripTypeScriptTypes } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../../e2e/fixtures/free-port.ts';

const root = path.resolve(import.meta.dirname, '../..');
// What people install, where it has been built: running from source adds the memory of the type stripper.
const packed = path.join(root, 'dist/skep-registry/skep-registry.js');
const main = existsSync(packed) ? packed : path.join(root, 'packages/registry/src/main.ts');

export interface ServedRegistry {
  /** Base URL of the registry, up to `/v0.1`. */
  readonly url: string;
  /** Milliseconds from starting the process to the first 200 of /readiness. */
  readonly readyMs: number;
  residentMB(): Promise<number>;
  /** The most that `residentMB` has been. */
  peakMB(): Promise<number>;
  stop(): Promise<void>;
}

/** A folder with catalogues and a configuration; starting it twice measures a first and a second start. */
export interface RegistryFolder {
  /** Path of its database. */
  readonly store: string;
  start(): Promise<ServedRegistry>;
  /** Milliseconds that the least program takes for the same (bare-start.ts), with a store of its own. */
  bareStart(): Promise<number>;
  /** Makes the next start of both a first one. */
  emptyStores(): Promise<void>;
  remove(): Promise<void>;
}

/** Each catalogue is a source of its own. */
export async function registryFolder(catalogues: readonly string[]): Promise<RegistryFolder> {
  const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-bench-'));
  const files = catalogues.map((_, index) => path.join(folder, `catalog-${index}.json`));
  await Promise.all(files.map((file, index) => writeFile(file, catalogues[index] ?? '')));
  const config = path.join(folder, 'registry.yaml');
  const names = files.map((file) => path.basename(file, '.json'));
  await writeFile(
    config,
    JSON.stringify({
      sources: names.map((name) => ({
        name,
        file: { path: `${name}.json` },
        syncPolicy: { interval: '1h' },
      })),
      registries: [{ name: 'bench', sources: names }],
      auth: { mode: 'anonymous' },
      storage: { path: 'registry.db' },
    }),
  );
  const store = path.join(folder, 'registry.db');
  const bare = { program: path.join(folder, 'bare-start.mjs'), store: path.join(folder, 'bare.db') };
  // Without types, as what it is compared with.
  const source = await readFile(path.join(import.meta.dirname, 'bare-start.ts'), 'utf8');
  await writeFile(bare.program, stripTypeScriptTypes(source));
  return {
    store,
    start: () => startRegistry(config),
    bareStart: () => startBare(bare, files),
    async emptyStores() {
      await rm(store, { force: true });
      await rm(bare.store, { force: true });
    },
    remove: () => rm(folder, { recursive: true }),
  };
}

/** Until it says that it listens; then it is ended, which is not measured. */
async function startBare(
  { program, store }: { readonly program: string; readonly store: string },
  catalogues: readonly string[],
): Promise<number> {
  const started = performance.now();
  const child = spawn(process.execPath, [program, store, ...catalogues], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const said = await Promise.race([once(child.stdout, 'data'), once(child, 'exit')]);
  const readyMs = performance.now() - started;
  await stop(child);
  if (!Buffer.isBuffer(said[0])) throw new Error(`the bare start ended with status ${String(said[0])}`);
  return readyMs;
}

/** Starts the program with a configuration whose registry is called `bench`, and waits until it is ready. */
export async function startRegistry(config: string): Promise<ServedRegistry> {
  const [open, internal] = [await freePort(), await freePort()];
  const addresses = ['--address', `127.0.0.1:${open}`, '--internal-address', `127.0.0.1:${internal}`];
  const started = performance.now();
  const child = spawn(process.execPath, [main, 'serve', '--config', config, ...addresses], {
    stdio: ['ignore', 'ignore', 'inherit'],
    // The bare server it is compared with writes no access log either.
    env: { ...process.env, SKEP_REGISTRY_LOG_LEVEL: 'error' },
  });
  await untilReady(`http://127.0.0.1:${internal}/readiness`, child);
  return {
    url: `http://127.0.0.1:${open}/registry/bench/v0.1`,
    readyMs: performance.now() - started,
    residentMB: () => memoryMB(child.pid, 'VmRSS'),
    peakMB: () => memoryMB(child.pid, 'VmHWM'),
    stop: () => stop(child),
  };
}

export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = once(child, 'exit');
  child.kill('SIGTERM');
  await exited;
}

async function untilReady(url: string, child: ChildProcess): Promise<void> {
  for (;;) {
    if (child.exitCode !== null) throw new Error(`skep-registry ended with status ${child.exitCode}`);
    const answer = await fetch(url).catch(() => undefined);
    await answer?.text();
    if (answer?.ok === true) return;
    // Each question takes time from the start that is measured.
    await delay(15);
  }
}

/** Resident memory now or at its peak, as the kernel counts it; only Linux says. */
async function memoryMB(pid: number | undefined, field: 'VmRSS' | 'VmHWM'): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8');
  return Number(new RegExp(String.raw`${field}:\s+(\d+) kB`).exec(status)?.[1]) / 1024;
}

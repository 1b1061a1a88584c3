import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { freePort } from '../fixtures/free-port.ts';
import { repoRoot } from '../require.ts';

/** The packed program when the e2e set-up has made one, else the sources. */
export function programFile(): string {
  const bundle = process.env['SKEP_TEST_BUNDLE'];
  return bundle === undefined
    ? path.join(repoRoot, 'packages/registry/src/main.ts')
    : path.join(bundle, 'skep-registry/skep-registry.js');
}

export interface Finished {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

export interface Running {
  readonly child: ChildProcess;
  /** Base URLs without trailing slash. */
  readonly open: string;
  readonly internal: string;
  /** Everything on standard error so far. */
  stderr(): string;
  /** Sends SIGTERM and waits for the end. */
  stop(): Promise<Finished>;
}

/** A program that may not be ready yet. */
export interface Starting extends Pick<Running, 'child' | 'stderr'> {
  ready(): Promise<Running>;
}

/** Variables of a program. */
export type Environment = Readonly<Record<string, string>>;

/** A folder of its own for one test: configuration, catalogue and store. */
export class RegistryFolder {
  readonly path: string;
  readonly #env: Environment;
  readonly #started: ChildProcess[] = [];

  private constructor(folder: string, env: Environment) {
    this.path = folder;
    this.#env = env;
  }

  /** `env` is what its programs have besides what every program needs. */
  static async create(env: Environment = {}): Promise<RegistryFolder> {
    return new RegistryFolder(await mkdtemp(path.join(os.tmpdir(), 'skep-registry-')), env);
  }

  /** Writes a file and returns its path. */
  async write(name: string, content: string | Uint8Array): Promise<string> {
    const file = path.join(this.path, name);
    await writeFile(file, content);
    return file;
  }

  /** A configuration that serves these catalogue files under the registry `all`, in this order. */
  config(files: Readonly<Record<string, string>>, interval = '1h'): Promise<string> {
    const names = Object.keys(files);
    return this.write(
      'registry.yaml',
      JSON.stringify({
        sources: names.map((name) => ({ name, file: { path: files[name] }, syncPolicy: { interval } })),
        registries: [{ name: 'all', sources: names }],
        auth: { mode: 'anonymous' },
        storage: { path: 'registry.db' },
      }),
    );
  }

  /** Runs a command to its end. */
  async run(...args: readonly string[]): Promise<Finished> {
    return finished(this.#spawn(args));
  }

  /** Starts `serve` and waits until it is ready; fails with what it wrote when it ends instead. */
  async serve(config: string, port?: number): Promise<Running> {
    return (await this.start(config, port)).ready();
  }

  /** Starts `serve` and waits for nothing. `port` is that of its callers, any free one otherwise. */
  async start(config: string, port?: number): Promise<Starting> {
    const [open, internal] = [port ?? (await freePort()), await freePort()];
    const addresses = ['--address', `127.0.0.1:${open}`, '--internal-address', `127.0.0.1:${internal}`];
    const started = this.#spawn(['serve', '--config', config, ...addresses]);
    const { child, stderr } = started;
    const end = finished(started);
    const base = `http://127.0.0.1:${internal}`;
    const running: Running = {
      child,
      open: `http://127.0.0.1:${open}`,
      internal: base,
      stderr,
      stop: () => {
        child.kill('SIGTERM');
        return end;
      },
    };
    const ready = async (): Promise<Running> => {
      while (!(await answers(`${base}/readiness`))) {
        if (child.exitCode !== null || child.signalCode !== null) {
          throw new Error(`serve ended with ${child.exitCode}: ${(await end).stderr}`);
        }
        await delay(20);
      }
      return running;
    };
    return { child, stderr, ready };
  }

  async remove(): Promise<void> {
    for (const child of this.#started) {
      if (child.exitCode !== null || child.signalCode !== null) continue;
      child.kill('SIGKILL');
      await once(child, 'exit');
    }
    await rm(this.path, { recursive: true, force: true });
  }

  #spawn(args: readonly string[]) {
    const child = spawn(process.execPath, [programFile(), ...args], {
      cwd: this.path,
      stdio: ['ignore', 'pipe', 'pipe'],
      env: { PATH: process.env['PATH'] ?? '', HOME: this.path, TMPDIR: this.path, ...this.#env },
    });
    this.#started.push(child);
    let [stdout, stderr] = ['', ''];
    child.stdout.on('data', (chunk: Buffer) => (stdout += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (stderr += chunk.toString()));
    return { child, stdout: () => stdout, stderr: () => stderr };
  }
}

async function finished({
  child,
  stdout,
  stderr,
}: {
  readonly child: ChildProcess;
  readonly stdout: () => string;
  readonly stderr: () => string;
}): Promise<Finished> {
  await once(child, 'close');
  return { code: child.exitCode, stdout: stdout(), stderr: stderr() };
}

async function answers(url: string): Promise<boolean> {
  const response = await fetch(url).catch(() => undefined);
  await response?.text();
  return response?.ok === true;
}

import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { chown, mkdtemp, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import type { PostgresPlace } from '@skep/registry/store/postgres/connect.ts';
import type { PostgresSettings, SslMode } from '@skep/registry/store/postgres/settings.ts';
import { Client } from 'pg';
import { freePort } from '../fixtures/free-port.ts';

export interface ClusterOptions {
  /** Folder with `initdb` and `postgres`. */
  readonly bin: string;
  /** Whether commits wait for the disk: needed where that is the point, slower everywhere else. */
  readonly durable?: boolean;
  /** Lines for `postgresql.conf`. */
  readonly settings?: readonly string[];
  /** Files in the data directory, by name; readable by the server only. */
  readonly files?: Readonly<Record<string, string>>;
}

/** A database server of a test's own, on a free port of the loopback address. */
export class Cluster {
  readonly port: number;
  readonly #options: ClusterOptions;
  readonly #directory: string;
  #server: ChildProcess | undefined;
  #databases = 0;

  private constructor(options: ClusterOptions, directory: string, port: number) {
    this.#options = options;
    this.#directory = directory;
    this.port = port;
  }

  static async start(options: ClusterOptions): Promise<Cluster> {
    const directory = await mkdtemp(path.join(os.tmpdir(), 'skep-pg-'));
    const { uid, gid } = serverUser();
    if (uid !== undefined && gid !== undefined) await chown(directory, uid, gid);
    const cluster = new Cluster(options, directory, await freePort());
    const initdb = spawn(
      path.join(options.bin, 'initdb'),
      ['-D', cluster.#data, '-U', 'postgres', '-A', 'trust', '-E', 'UTF8', '--locale=C', '--no-sync'],
      { ...serverUser(), cwd: directory, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    let complaint = '';
    initdb.stderr.on('data', (chunk: Buffer) => (complaint += chunk.toString()));
    const [code] = await once(initdb, 'exit');
    if (code !== 0) throw new Error(`initdb failed: ${complaint}`);
    for (const [name, text] of Object.entries(options.files ?? {})) {
      const file = path.join(cluster.#data, name);
      await writeFile(file, text, { mode: 0o600 });
      if (uid !== undefined && gid !== undefined) await chown(file, uid, gid);
    }
    await cluster.resume();
    return cluster;
  }

  get #data(): string {
    return path.join(this.#directory, 'data');
  }

  /** Starts the server, again after `kill` with recovery. Resolves when it takes connections. */
  async resume(): Promise<void> {
    const give = Date.now() + 30_000;
    let log = '';
    let server: ChildProcess | undefined;
    for (;;) {
      if (server === undefined || server.exitCode !== null) {
        // Children of a killed server live a moment longer, and a new one does not start beside them.
        server = this.#spawn((text) => (log = (log + text).slice(-20_000)));
        this.#server = server;
      }
      try {
        await this.query('postgres', 'select 1');
        return;
      } catch (error) {
        if (Date.now() > give) throw new Error(`postgres does not answer: ${log}`, { cause: error });
      }
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  }

  #spawn(said: (text: string) => void): ChildProcess {
    const { bin, durable = false, settings = [] } = this.#options;
    const lines = [
      `port=${this.port}`,
      'listen_addresses=127.0.0.1',
      'unix_socket_directories=',
      'max_connections=60',
      ...(durable ? [] : ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off']),
      ...settings,
    ];
    const server = spawn(
      path.join(bin, 'postgres'),
      ['-D', this.#data, ...lines.flatMap((line) => ['-c', line])],
      { ...serverUser(), cwd: this.#directory, stdio: ['ignore', 'ignore', 'pipe'] },
    );
    server.stderr.on('data', (chunk: Buffer) => said(chunk.toString()));
    return server;
  }

  /** As a power cut of the server's process: the postmaster dies at once, its children notice. */
  async kill(): Promise<void> {
    const server = this.#server;
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'exit');
    server.kill('SIGKILL');
    await gone;
  }

  /** Ends the server and removes its files. */
  async stop(): Promise<void> {
    const server = this.#server;
    if (server !== undefined && server.exitCode === null && server.signalCode === null) {
      const gone = once(server, 'exit');
      server.kill('SIGINT');
      await gone;
    }
    await rm(this.#directory, { recursive: true, force: true });
  }

  /** Makes a database and returns its name; a copy of `template` where that is given. */
  async createDatabase(template?: string): Promise<string> {
    const name = `test_${++this.#databases}`;
    await this.query(
      'postgres',
      `create database ${name}${template === undefined ? '' : ` template ${template}`}`,
    );
    return name;
  }

  async dropDatabase(name: string): Promise<void> {
    await this.query('postgres', `drop database ${name} with (force)`);
  }

  /** Runs statements as the superuser. */
  async query(database: string, text: string): Promise<readonly Record<string, unknown>[]> {
    const client = new Client({ host: '127.0.0.1', port: this.port, user: 'postgres', database });
    client.on('error', () => {});
    await client.connect();
    try {
      const { rows } = await client.query(text);
      return rows;
    } finally {
      await client.end();
    }
  }

  /** How the store connects to a database of this server. */
  place(
    database: string,
    settings: Partial<PostgresSettings> & { readonly sslMode?: SslMode } = {},
  ): PostgresPlace {
    return {
      settings: {
        host: '127.0.0.1',
        port: this.port,
        database,
        user: 'postgres',
        password: 'unused',
        sslMode: 'disable',
        ...settings,
      },
      passwordFile: { named: undefined, homeDirectory: this.#directory, platform: process.platform },
      applicationName: 'skep-registry-test',
    };
  }
}

/** PostgreSQL does not run as root; nobody (65534) owns nothing else. */
function serverUser(): { readonly uid?: number; readonly gid?: number } {
  return process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : {};
}

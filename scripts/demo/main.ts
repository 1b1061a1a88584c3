import { once } from 'node:events';
import type { ChildProcess } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { ensureBaseImage, removeBaseImage } from './base-image.ts';
import { ensureBubblewrap } from './bubblewrap.ts';
import { callTools } from './client.ts';
import { type Engine, findEngine } from './engine.ts';
import { freePort } from '../../e2e/fixtures/free-port.ts';
import { type Programs, programsIn } from './programs.ts';
import { screenOn } from './screen.ts';

/**
 * `npm run demo`: serves the starter catalogue, runs a server from it by name, lets the official client call a tool,
 * and cleans up. It keeps all its files in one temporary folder, so a user's own workloads are never touched.
 */
const SERVER = 'everything';
const screen = screenOn(process.stdout);
const home = mkdtempSync(path.join(os.tmpdir(), 'skep-demo-'));
const programs = programsIn(home, await freePort());
const catalogue = path.resolve(import.meta.dirname, '../../packages/core/src/catalog/starter.json');

let registry: ChildProcess | undefined;
let engine: Engine | undefined;
const failed = await demo().catch((error: unknown) => {
  screen.note(`the demo stopped: ${error instanceof Error ? error.message : String(error)}`);
  return 1;
});
process.exitCode ||= failed;

async function demo(): Promise<number> {
  screen.title('Skep', 'a catalogue is served, a server from it is run, a client calls its tools');
  const interrupted = new AbortController();
  process.once('SIGINT', () => interrupted.abort());
  try {
    const flags = await chooseRuntime();
    if (!flags) return 1;
    await serveCatalogue(programs);
    const url = await runServer(flags);
    interrupted.signal.throwIfAborted();
    screen.chapter('The official MCP TypeScript client calls it');
    await callTools(url, screen);
    await whatHappened();
    return 0;
  } finally {
    if (!(await cleanUp(programs))) process.exitCode = 1;
  }
}

/** Extra `skep run` flags for the runtime that will be used, or undefined when none can be had. */
async function chooseRuntime(): Promise<readonly string[] | undefined> {
  screen.chapter('Where servers can run on this machine');
  engine = process.env['SKEP_RUNTIME'] === 'sandbox' ? undefined : await findEngine();
  if (engine) {
    screen.done(`container engine ${engine.version} at ${engine.endpoint}`);
    return ensureBaseImage(engine, screen);
  }
  if (!ensureBubblewrap(screen)) return undefined;
  screen.done("no container engine is used: servers run in this system's sandbox, bubblewrap");
  return [];
}

async function serveCatalogue({ registry: start, skep }: Programs): Promise<void> {
  screen.chapter('skep-registry serves the starter catalogue from its embedded store');
  const [port, internalPort] = [await freePort(), await freePort()];
  const config = path.join(home, 'registry.yaml');
  writeFileSync(
    config,
    [
      'sources:',
      `  - { name: starter, file: { path: ${JSON.stringify(catalogue)} }, syncPolicy: { interval: 5m } }`,
      'registries:',
      '  - { name: demo, sources: [starter] }',
      'auth: { mode: anonymous }',
      '',
    ].join('\n'),
  );
  screen.typed('skep-registry serve --config registry.yaml');
  const listen = ['--address', `127.0.0.1:${port}`, '--internal-address', `127.0.0.1:${internalPort}`];
  registry = start(['serve', '--config', config, ...listen]);
  await untilReady(registry, internalPort);
  const base = `http://127.0.0.1:${port}/registry/demo`;
  const page = await fetch(`${base}/v0.1/servers?version=latest&limit=100`);
  const { metadata } = (await page.json()) as { metadata: { count: number } };
  screen.done(`${metadata.count} servers at ${base}/v0.1/servers`);
  screen.typed(`skep config set-registry ${base} --allow-private-ip`);
  await succeed(
    skep(['config', 'set-registry', base, '--allow-private-ip'], { quiet: true }),
    'config set-registry',
  );
}

async function untilReady(server: ChildProcess, port: number): Promise<void> {
  let said = '';
  server.stderr?.on('data', (chunk: Buffer) => (said = (said + chunk.toString()).slice(-4000)));
  for (let attempt = 0; attempt < 100; attempt += 1) {
    if (server.exitCode !== null) throw new Error(`skep-registry ended at once:\n${said}`);
    const ready = await fetch(`http://127.0.0.1:${port}/readiness`).then(
      (response) => response.ok,
      () => false,
    );
    if (ready) return;
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  throw new Error(`skep-registry was not ready after 10 s:\n${said}`);
}

async function runServer(flags: readonly string[]): Promise<string> {
  screen.chapter(`skep run starts "${SERVER}" from that catalogue`);
  screen.typed(['skep', 'run', ...flags, SERVER].join(' '));
  await succeed(programs.skep(['run', ...flags, SERVER]), 'run');
  return (await workload(programs)).url;
}

interface Workload {
  readonly name: string;
  readonly package: string;
  readonly status: string;
  readonly url: string;
}

async function workload({ skep }: Programs): Promise<Workload> {
  const { stdout } = await succeed(skep(['list', '--format', 'json'], { quiet: true }), 'list');
  const [only] = JSON.parse(stdout) as readonly Workload[];
  if (!only) throw new Error('skep list shows no workload');
  return only;
}

async function whatHappened(): Promise<void> {
  screen.chapter('What happened');
  const { name, package: reference, status } = await workload(programs);
  screen.fact('catalogue', `${SERVER} → ${reference}`);
  screen.fact('workload', `${name}, ${status}, confined; speaks JSON-RPC on its stdin and stdout`);
  screen.fact('supervisor', 'one background process holds the pipe and hosts the proxy');
  screen.fact('proxy', 'checks Host and Origin, gives each client a session, maps request ids');
  screen.fact('client', 'one HTTP POST per call; the answer came back on the same request');
}

/** Returns whether everything is gone. */
async function cleanUp({ skep }: Programs): Promise<boolean> {
  screen.chapter('Clean-up');
  screen.typed('skep rm --all');
  const removed = await skep(['rm', '--all'], { quiet: true });
  if (registry && registry.exitCode === null) {
    registry.kill('SIGTERM');
    await once(registry, 'exit');
  }
  if (engine) await removeBaseImage(engine);
  rmSync(home, { recursive: true, force: true });
  if (removed.code === 0) screen.done('no workload, container, process or file is left');
  else screen.note(`skep rm --all failed: ${removed.stderr.trim()}`);
  process.stdout.write('\n');
  return removed.code === 0;
}

async function succeed<T extends { readonly code: number }>(running: Promise<T>, what: string): Promise<T> {
  const ran = await running;
  if (ran.code !== 0) throw new Error(`skep ${what} failed with exit status ${ran.code}`);
  return ran;
}

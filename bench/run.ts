import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import { ensureNodeBase } from '../e2e/images.ts';
import { component, title } from '../e2e/require.ts';
import { ask, ended, filesIn, openUser, type TestUser } from '../e2e/skep.ts';
import { median } from './median.ts';
import { echoImage } from './proxy/echo.ts';
import type { Bench } from './row.ts';

const BUNDLE = path.resolve(import.meta.dirname, '../dist/skep/skep.js');
const PACKAGE = '@modelcontextprotocol/server-everything';
/** Named exactly, as catalogues do: nothing has to be looked up. */
const VERSION = '2026.8.31';
const ROUNDS = { smoke: 9, full: 21 };
/** With the supervisor up, and with none, which the command then starts. */
const CEILING = { up: 1.5, down: 2 };
/** What the handshake, the listing of tools and the card may add. */
const CHECK_CEILING = 1.1;
/** Longer than a supervisor needs to make the next network, and what holds it open, while nobody asks it for anything. */
const AHEAD_MS = 600;
const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
};

/**
 * From `skep run` of something that is ready, to the first answered `tools/list`, against a client that starts the same
 * server itself: what the one who runs it waits for.
 */
export const runBench: Bench = async (report, { seconds }) => {
  if (!existsSync(BUNDLE)) throw new Error('dist/skep is missing: run "npm run build" first');
  const rounds = seconds > 1 ? ROUNDS.full : ROUNDS.smoke;
  for (const prepare of [prepareImage, preparePackage, prepareBuilt]) {
    const subject = await prepare();
    if (typeof subject === 'string') {
      console.log(subject);
      continue;
    }
    try {
      for (const supervisor of ['down', 'up'] as const) {
        report({
          name: `run: ${subject.what}, supervisor ${supervisor}`,
          value: await ratio(subject, supervisor, rounds),
          unit: 'ratio',
          ceiling: CEILING[supervisor],
        });
      }
      report({
        name: `run: ${subject.what.split(',')[0]}, asked for its tools, against --no-check`,
        value: await checkRatio(subject, rounds),
        unit: 'ratio',
        ceiling: CHECK_CEILING,
      });
    } finally {
      await subject.user.end();
    }
  }
};

interface Subject {
  readonly what: string;
  readonly user: TestUser;
  readonly target: string;
  readonly flags: readonly string[];
  /** Starts the same server without Skep, on its standard streams. */
  readonly bare: readonly [command: string, ...args: string[]];
}

async function prepareImage(): Promise<Subject | string> {
  const engine = await component('engine');
  if (!engine.available) return title('run of an image', engine);
  if (spawnSync('docker', ['--version']).status !== 0)
    return 'run of an image [skipped: docker is not installed]';
  const image = await echoImage();
  return {
    what: 'image, against docker run -i',
    user: openUser({ SKEP_RUNTIME: 'docker' }),
    target: image,
    flags: [],
    bare: ['docker', 'run', '-i', '--rm', image],
  };
}

async function preparePackage(): Promise<Subject | string> {
  const needed = [await component('npm'), await component('sandbox')];
  if (needed.some((one) => !one.available)) return title('run of a package', ...needed);
  const user = openUser({ SKEP_RUNTIME: 'sandbox' });
  const target = `npx://${PACKAGE}@${VERSION}`;
  try {
    // As long as it is saved the package stays, and is not fetched again.
    await skep(user, ['run', target, '--name', 'first']);
    await skep(user, ['stop', 'first']);
    const entry = filesIn(user.dir).find((file) => file.endsWith(`node_modules/${PACKAGE}/dist/index.js`));
    if (entry === undefined) throw new Error(`${PACKAGE} was not found where Skep keeps packages`);
    const sandbox = '--ro-bind / / --dev /dev --proc /proc --unshare-all --die-with-parent --'.split(' ');
    return {
      what: 'package, against bubblewrap',
      user,
      target,
      flags: [],
      bare: ['bwrap', ...sandbox, process.execPath, path.join(user.dir, entry)],
    };
  } catch (error) {
    await user.end();
    throw error;
  }
}

/** A second run of what was built before: nothing is built or fetched. */
async function prepareBuilt(): Promise<Subject | string> {
  const needed = [await component('npm'), await component('engine')];
  if (needed.some((one) => !one.available)) return title('run of a built package', ...needed);
  if (spawnSync('docker', ['--version']).status !== 0)
    return 'run of a built package [skipped: docker is not installed]';
  const user = openUser({ SKEP_RUNTIME: 'docker' });
  const target = `npx://${PACKAGE}@${VERSION}`;
  const flags = ['--runtime-image', await ensureNodeBase()];
  try {
    await skep(user, ['run', target, '--name', 'first', ...flags]);
    await skep(user, ['stop', 'first']);
    const saved = path.join(user.dir, 'state/skep/runconfigs/first.json');
    const { image } = JSON.parse(readFileSync(saved, 'utf8')) as { image: string };
    return {
      what: 'package built before, against docker run -i',
      user,
      target,
      flags,
      bare: ['docker', 'run', '-i', '--rm', image],
    };
  } catch (error) {
    await user.end();
    throw error;
  }
}

/** Of the medians; the two alternate, so that what else the machine does meets both. */
async function ratio(subject: Subject, supervisor: 'up' | 'down', rounds: number): Promise<number> {
  const { user, target, flags, bare } = subject;
  const ours: number[] = [];
  const theirs: number[] = [];
  if (supervisor === 'up') await skep(user, ['run', target, '--name', 'stays', ...flags]);
  for (let round = 0; round < rounds; round += 1) {
    if (supervisor === 'down') await endSupervisor(user);
    theirs.push(await bareMilliseconds(bare));
    ours.push(await skepMilliseconds(user, target, ...flags));
  }
  if (supervisor === 'up') await skep(user, ['rm', 'stays']);
  return median(ours) / median(theirs);
}

/** To the first answered `tools/list` of a client, which shakes hands itself where nobody did; with the supervisor up. */
async function checkRatio({ user, target, flags }: Subject, rounds: number): Promise<number> {
  const checked: number[] = [];
  const unchecked: number[] = [];
  await skep(user, ['run', target, '--name', 'stays', ...flags]);
  for (let round = 0; round < rounds; round += 1) {
    checked.push(await skepMilliseconds(user, target, ...flags));
    unchecked.push(await skepMilliseconds(user, target, '--no-check', ...flags));
  }
  await skep(user, ['rm', 'stays']);
  return median(checked) / median(unchecked);
}

async function endSupervisor(user: TestUser): Promise<void> {
  // What would start it again goes first.
  for (const pid of [...user.watchers(), ...user.supervisors()]) process.kill(pid, 'SIGKILL');
  while (user.watchers().length + user.supervisors().length > 0) await delay(10);
}

/** The packed program; what it printed. */
export async function skep({ env, dir }: TestUser, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--', BUNDLE, ...args], { env, cwd: dir });
  const { code, stdout, stderr } = await ended(child);
  if (code !== 0) throw new Error(`skep ${args.join(' ')} failed: ${stderr}`);
  return stdout.trim();
}

/** Until the answer; then the server is ended, which is not measured. */
export async function bareMilliseconds([command, ...args]: Subject['bare']): Promise<number> {
  const started = performance.now();
  const child = spawn(command, args, { stdio: ['pipe', 'pipe', 'ignore'] });
  const exit = once(child, 'exit');
  const send = (message: object): boolean =>
    child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
  send({ id: 0, method: 'initialize', params: INITIALIZE });
  let answered: number | undefined;
  for await (const line of createInterface({ input: child.stdout })) {
    const { id } = JSON.parse(line) as { id?: number };
    if (id === 0) {
      send({ method: 'notifications/initialized' });
      send({ id: 1, method: 'tools/list', params: {} });
    }
    if (id !== 1) continue;
    answered = performance.now();
    child.stdin.end();
  }
  await exit;
  if (answered === undefined) throw new Error(`${command} ${args.join(' ')} did not answer`);
  return answered - started;
}

/**
 * From `skep run` to the first answered `tools/list`; then it is removed, which is not measured. What the supervisor makes ahead
 * is there for the next one, as it is for a person: else chance would tell which of two runs finds it.
 */
export async function skepMilliseconds(user: TestUser, target: string, ...flags: string[]): Promise<number> {
  const started = performance.now();
  const url = await skep(user, ['run', target, '--name', 'measured', ...flags]);
  const { error } = await ask(url, 'tools/list');
  const answered = performance.now();
  if (error) throw new Error(error.message);
  await skep(user, ['rm', 'measured']);
  await delay(AHEAD_MS);
  return answered - started;
}

import { spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { component, title } from '../e2e/require.ts';
import { ask, ended, openUser, type TestUser } from '../e2e/skep.ts';
import { median } from './median.ts';
import { echoImage } from './proxy/echo.ts';
import type { Bench } from './row.ts';

const BUNDLE = path.resolve(import.meta.dirname, '../dist/skep/skep.js');
const ROUNDS = { smoke: 5, full: 11 };
const INITIALIZE = {
  protocolVersion: '2025-06-18',
  capabilities: {},
  clientInfo: { name: 'bench', version: '1' },
};

/**
 * From `skep run` of an image that is there to the first answered `tools/list`, against a client that starts the same
 * image itself: what the one who runs it waits for.
 */
export const runBench: Bench = async (report, { seconds }) => {
  if (!existsSync(BUNDLE)) throw new Error('dist/skep is missing: run "npm run build" first');
  const engine = await component('engine');
  if (!engine.available) return console.log(title('run of an image', engine));
  if (spawnSync('docker', ['--version']).status !== 0)
    return console.log('run of an image [skipped: docker is not installed]');
  const image = await echoImage();
  const user = openUser({ SKEP_RUNTIME: 'docker' });
  try {
    // The supervisor is up as long as it hosts something.
    await skep(user, ['run', image, '--name', nameOf('stays')]);
    report({
      name: 'run: image to the first answer, against docker run -i',
      value: await ratio(user, image, seconds > 1 ? ROUNDS.full : ROUNDS.smoke),
      unit: 'ratio',
      ceiling: 1.5,
      notYet: true,
    });
  } finally {
    await user.end();
  }
};

const nameOf = (what: string): string => `bench-${what}-${String(process.pid)}`;

/** Of the medians; the two alternate, so that what else the machine does meets both. */
async function ratio(user: TestUser, image: string, rounds: number): Promise<number> {
  const ours: number[] = [];
  const theirs: number[] = [];
  for (let round = 0; round < rounds; round += 1) {
    theirs.push(await dockerMilliseconds(image));
    ours.push(await skepMilliseconds(user, image));
  }
  return median(ours) / median(theirs);
}

async function skepMilliseconds(user: TestUser, image: string): Promise<number> {
  const name = nameOf('run');
  const started = performance.now();
  const url = await skep(user, ['run', image, '--name', name]);
  const { error } = await ask(url, 'tools/list');
  const answered = performance.now();
  if (error) throw new Error(error.message);
  await skep(user, ['rm', name]);
  return answered - started;
}

async function skep({ env, dir }: TestUser, args: readonly string[]): Promise<string> {
  const child = spawn(process.execPath, ['--', BUNDLE, ...args], { env, cwd: dir });
  const { code, stdout, stderr } = await ended(child);
  if (code !== 0) throw new Error(`skep ${args.join(' ')} failed: ${stderr}`);
  return stdout.trim();
}

/** Until the answer; then the server is ended, which is not measured. */
async function dockerMilliseconds(image: string): Promise<number> {
  const started = performance.now();
  const child = spawn('docker', ['run', '-i', '--rm', image], { stdio: ['pipe', 'pipe', 'inherit'] });
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
  if (answered === undefined) throw new Error(`docker run of ${image} did not answer`);
  return answered - started;
}

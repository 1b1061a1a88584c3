import { readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import path from 'node:path';
import { npmRegistryWith } from '../e2e/fixtures/npm-registry.ts';
import { component, title } from '../e2e/require.ts';
import { openUser, type TestUser } from '../e2e/skep.ts';
import { median } from './median.ts';
import { measureCalls, openSession, type Endpoint } from './proxy/calls.ts';
import { echoImage } from './proxy/echo.ts';
import type { Bench } from './row.ts';
import { bareMilliseconds, skep, skepMilliseconds } from './run.ts';

const PACKAGE = 'skep-bench-echo';
const TARGET = `npx://${PACKAGE}@1.0.0`;
const ROUNDS = { smoke: 5, full: 11 };
const CALL_ROUNDS = 3;
const CONNECTIONS = 32;

/** The same small server in the sandbox and in a container, with and without a gateway of its own. */
export const isolationBench: Bench = async (report, { seconds }) => {
  const [engine, sandbox] = [await component('engine'), await component('sandbox')];
  if (!sandbox.available) {
    console.log(title('isolation', sandbox));
    return;
  }
  await using registry = await npmRegistryWith(PACKAGE, echoProgram());
  await using opened = new AsyncDisposableStack();
  const open = (env: Readonly<Record<string, string>>): TestUser =>
    opened.adopt(openUser(env), (user) => user.end());
  const sandboxed = open({ SKEP_RUNTIME: 'sandbox', npm_config_registry: registry.url });
  // As long as it is saved the package stays, and is not fetched again; and the supervisor is up.
  await skep(sandboxed, ['run', TARGET, '--name', 'stays']);
  if (engine.available) {
    report({
      name: 'isolation: warm start in the sandbox, against docker run -i',
      value: await startRatio(sandboxed, seconds),
      unit: 'ratio',
      ceiling: 0.4,
      onlyTold: 'owed',
    });
  }
  report({
    name: 'isolation: calls to an isolated server, against one that is not',
    value: await callsRatio(sandboxed, seconds),
    unit: 'ratio',
    floor: 0.9,
  });
};

function echoProgram(): string {
  const script = readFileSync(path.join(import.meta.dirname, 'proxy/echo-server.ts'), 'utf8');
  return `#!/usr/bin/env node\n${stripTypeScriptTypes(script)}`;
}

/** Of the medians; the two take turns. */
async function startRatio(sandboxed: TestUser, seconds: number): Promise<number> {
  const image = await echoImage();
  const [ours, theirs]: [number[], number[]] = [[], []];
  for (let round = 0; round < (seconds > 1 ? ROUNDS.full : ROUNDS.smoke); round += 1) {
    theirs.push(await bareMilliseconds(['docker', 'run', '-i', '--rm', image]));
    ours.push(await skepMilliseconds(sandboxed, TARGET));
  }
  return median(ours) / median(theirs);
}

async function callsRatio(user: TestUser, seconds: number): Promise<number> {
  const run = async (name: string, ...flags: string[]): Promise<Endpoint> => {
    const url = await skep(user, ['run', TARGET, '--name', name, ...flags]);
    return { url, headers: await openSession(url) };
  };
  const [open, isolated] = [await run('open'), await run('isolated', '--isolate-network')];
  const load = { connections: CONNECTIONS, seconds };
  const ratios: number[] = [];
  for (let round = 0; round < CALL_ROUNDS; round += 1) {
    const without = await measureCalls(open.url, open.headers, load);
    const within = await measureCalls(isolated.url, isolated.headers, load);
    ratios.push(within.perSecond / without.perSecond);
  }
  return median(ratios);
}

import { execFileSync, type ChildProcess } from 'node:child_process';
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { npmRegistryOf, programPackage, type NpmRegistry } from './fixtures/npm-registry.ts';
import { privateEngine, type PrivateEngine } from './fixtures/private-engine.ts';
import { TINY_SERVER } from './fixtures/tiny-server.ts';
import { ensureTinyImage } from './images.ts';
import { look } from './kills/look.ts';
import {
  drawRound,
  numbersFrom,
  VICTIMS,
  type Action,
  type Point,
  type State,
  type Victim,
} from './kills/schedule.ts';
import { savedOf, stateOf, statusOf, unsettled, WORKLOADS, type Workload } from './kills/workloads.ts';
import { component, title } from './require.ts';
import { ended, openUser, signal, type SkepResult, type TestUser } from './skep.ts';

// Commands run, stop, start, upgrade and remove workloads on both runtimes while something that carries them is killed. What
// is to run answers again each time, and nothing of the rest is left. SKEP_TEST_KILLS is the number of kills (npm run
// test:kills: 200), SKEP_TEST_KILLS_SEED repeats the schedule of a run that failed.

const ours = await component('private-engine');
const sandbox = await component('sandbox');
const slirp = await component('slirp');

const isWhole = process.env['SKEP_TEST_KILLS'] !== undefined;
const KILLS = Number(process.env['SKEP_TEST_KILLS'] ?? 24);
const SEED = Number(process.env['SKEP_TEST_KILLS_SEED'] ?? (isWhole ? Date.now() % 1_000_000 : 1));
const PACKAGE = 'skep-test-killed';
const SETTLES_MS = 120_000;
const NO_POINT: Point = { action: 'nothing', victim: 'container', afterMs: 0 };
/** What a workload is after a command that did what it was asked; as before for the others. */
const REACHES: Partial<Record<Action, State>> = {
  run: 'running',
  start: 'running',
  stop: 'stopped',
  rm: 'gone',
};

interface Outcome extends Point {
  readonly workload: Workload;
  readonly before: State;
  /** Its start had failed, so that whoever had asked for it may still be removing it. */
  readonly mayGo: boolean;
  /** Undefined where nothing was being done to it. */
  readonly result: SkepResult | undefined;
  readonly hit: boolean;
}

describe.skipIf(![ours, sandbox, slirp].every((one) => one.available))(
  title('workloads whose command, supervisor, engine, process or gateway is killed', ours, sandbox, slirp),
  () => {
    let engine: PrivateEngine;
    let registry: NpmRegistry;
    let user: TestUser;
    let temp: string;

    beforeAll(async () => {
      engine = privateEngine();
      await engine.start();
      vi.stubEnv('DOCKER_HOST', `unix://${engine.socket}`);
      const image = await ensureTinyImage(TINY_SERVER);
      const made = docker('create', image).trim();
      for (const tag of [1, 2])
        docker('commit', '--change', `LABEL version=${tag}`, made, `skep-test/killed:${tag}`);
      docker('rm', made);
      registry = await npmRegistryOf(
        ['1.0.0', '2.0.0'].map((version) => programPackage(PACKAGE, MOODY_SERVER, { version })),
      );
      user = openUser({ npm_config_registry: registry.url });
      temp = path.join(user.dir, 'temp');
      mkdirSync(temp);
    });
    afterAll(async () => {
      try {
        await user.end();
      } finally {
        await engine.end();
        vi.unstubAllEnvs();
        await registry[Symbol.asyncDispose]();
      }
    });

    const docker = (...args: string[]): string => execFileSync('docker', args, { encoding: 'utf8' });

    /** The command line for it; undefined where nothing is to be done. */
    function commandFor(action: Action, { name, on, isolated }: Workload): string[] | undefined {
      if (action === 'nothing') return undefined;
      if (action === 'run') {
        const target = on === 'docker' ? 'skep-test/killed:1' : `npx://${PACKAGE}@1.0.0`;
        return ['run', target, '--name', name, '--runtime', on, ...(isolated ? ['--isolate-network'] : [])];
      }
      if (action !== 'upgrade') return [action, name];
      const saved = savedOf(user, name);
      const isFirst = on === 'docker' ? saved?.image.endsWith(':1') : saved?.package_version === '1.0.0';
      const version = isFirst === true ? 2 : 1;
      return ['upgrade', '--yes', name, '--to', on === 'docker' ? `${version}` : `${version}.0.0`];
    }

    /** A process of that workload, or of its gateway; none where there is none, or the engine is away. */
    async function processesOf(name: string, victim: 'container' | 'gateway'): Promise<readonly number[]> {
      const seen = await look(user).catch(() => undefined);
      const called = victim === 'gateway' ? `skep-${name}-gateway` : name;
      const part = seen?.parts.find(
        (one) => one.what === 'container' && one.called === called && one.running,
      );
      if (part !== undefined) return [await part.pid().catch(() => 0)].filter((pid) => pid > 0);
      const mine = seen?.processes.filter((one) => one.workload === name) ?? [];
      const isIt = (one: (typeof mine)[number]): boolean =>
        victim === 'gateway' ? one.holds.includes('gate') : one.isServer;
      return mine.filter(isIt).map(({ pid }) => pid).slice(0, 1); // prettier-ignore
    }

    /** True when there was something to kill. */
    async function kill(victim: Victim, name: string, command: ChildProcess | undefined): Promise<boolean> {
      if (victim === 'command') return command?.kill('SIGKILL') === true;
      if (victim === 'engine') {
        await engine.kill();
        await engine.start();
        return true;
      }
      const pids = victim === 'supervisor' ? user.supervisors() : await processesOf(name, victim);
      signal(pids, 'SIGKILL');
      return pids.length > 0;
    }

    async function carryOut(point: Point, workload: Workload): Promise<Outcome> {
      const before = stateOf(user, workload.name);
      const mayGo = before === 'stopped' && statusOf(user, workload.name)?.status !== 'stopped';
      const args = commandFor(point.action, workload);
      const command = args && user.start(args, { env: { TMPDIR: temp } });
      const over = command && ended(command);
      // Not to wait for something: the moment of the kill is what is tried.
      await delay(point.afterMs);
      const hit = await kill(point.victim, workload.name, command);
      return { ...point, workload, before, mayGo, hit, result: await over };
    }

    /** Until all is as it is to be; fails with what is not. */
    async function settled(told: string): Promise<void> {
      const settling = { timeout: SETTLES_MS, interval: 200 };
      await vi.waitFor(async () => expect(await unsettled(user), told).toEqual([]), settling);
    }

    /** One round of commands and kills, and what is left of it. */
    async function goRound(points: readonly Point[]): Promise<readonly Outcome[]> {
      const begun = WORKLOADS.map((workload, at) => ({ workload, point: points[at] ?? NO_POINT }));
      const outcomes = await Promise.all(begun.map(({ workload, point }) => carryOut(point, workload)));
      const told = outcomes.map(textOf).join('\n');
      for (const one of outcomes) checkResult(one, told);
      await settled(told);
      for (const one of outcomes) checkState(one, told);
      return outcomes.filter(({ hit }) => hit);
    }

    test(
      `come back if they are wanted, and leave nothing if not: ${KILLS} kills (SKEP_TEST_KILLS_SEED=${SEED})`,
      { timeout: 120_000 + KILLS * 20_000 },
      async () => {
        const next = numbersFrom(SEED);
        const killed: Victim[] = [];
        const began = performance.now();
        let rounds = 0;
        for (; killed.length < KILLS; rounds += 1) {
          const states = WORKLOADS.map(({ name }) => stateOf(user, name));
          killed.push(...(await goRound(drawRound(states, next))).map(({ victim }) => victim));
        }
        if (isWhole) {
          const counts = VICTIMS.map((one) => `${one} ${killed.filter((victim) => victim === one).length}`);
          const seconds = Math.round((performance.now() - began) / 1000);
          process.stdout.write(`${rounds} rounds in ${seconds} s, killed: ${counts.join(', ')}\n`);
        }
        expect(await user.skep(['rm', '--all', '--data'])).toMatchObject({ code: 0 });
        const nothing = { processes: [], holders: [], parts: [], spares: [], ready: 0, directories: [] };
        const ending = { timeout: SETTLES_MS, interval: 200 };
        await vi.waitFor(async () => {
          expect([...user.supervisors(), ...user.watchers()]).toEqual([]);
          expect(await look(user)).toMatchObject(nothing);
        }, ending);
        expect(user.leftFiles()).toEqual([]);
        expect(readdirSync(temp)).toEqual([]);
        expect(readFileSync('/proc/mounts', 'utf8')).not.toContain(user.dir);
      },
    );

    function textOf({ workload, before, action, victim, afterMs, hit, result }: Outcome): string {
      const came = result === undefined ? '' : `, which ended with ${result.code}: ${result.stderr.trim()}`;
      return `${workload.name} was ${before}, ${hit ? victim : 'nothing'} killed ${afterMs} ms after ${action}${came}`;
    }

    /** One line for the problem, in words for a person. */
    function checkResult({ result }: Outcome, told: string): void {
      if (result === undefined || result.code === null) return;
      expect(result.stderr, told).not.toMatch(/internal error|ended before|broke|did not come up/);
      const problems = result.stderr.split('\n').filter((line) => line.startsWith('Error: '));
      expect(problems, told).toHaveLength(result.code === 0 ? 0 : 1);
    }

    /** What was reached, where a command says so; what was before, where it does not matter to that; else one or the other. */
    function checkState({ workload, action, before, mayGo, result }: Outcome, told: string): void {
      const state = stateOf(user, workload.name);
      const reached = REACHES[action] ?? before;
      const isSure = reached === before || result?.code === 0;
      const mayBeGone: readonly State[] = mayGo && result?.code !== 0 ? ['gone'] : [];
      const allowed: readonly State[] = isSure ? [reached] : [reached, before, 'stopped'];
      expect([...allowed, ...mayBeGone], `${workload.name} is ${state}\n${told}`).toContain(state);
    }
  },
);

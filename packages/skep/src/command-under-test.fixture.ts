import { randomInt } from 'node:crypto';
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { runProgram } from '@skep/core/command/program.ts';
import { places as placesOf, type Places } from '@skep/core/files/places.ts';
import type { ToolCount } from '@skep/proxy/call/tool-counts.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { onTestFinished } from 'vitest';
import type { Context } from './cli/context.ts';
import { SKEP } from './commands.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import type { Spares } from './runtime/spares.ts';
import { MemoryRuntime } from './runtime/doubles/memory-runtime.ts';
import { idle } from './runtime/doubles/program.ts';
import { runForCommand } from './commands/run-for-command.ts';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import type { Keyring } from './secrets/keyring/keyring.ts';
import { openHostUnderTest, runtimeOf } from './host-under-test.fixture.ts';
import type { Host } from './supervisor/host.ts';
import type { PolicyGate } from './supervisor/policy.ts';
import type { ProcessIdentity } from './supervisor/process-identity.ts';
import { resume } from './supervisor/resume.ts';
import { testServer } from './supervisor/server.fixture.ts';
import type { Woken } from './supervisor/wake-early.ts';

/** What a test says of the machine that its commands run on; the rest is as it usually is. */
export interface MachineUnderTest {
  /** Its container engine; it has the images `fake:1` and `example/tools:2` and the packages `fake` and `fake-too`. */
  readonly runtime?: MemoryRuntime;
  /** What stands beside it; there is only the one otherwise, whatever a command wants. */
  readonly sandbox?: MemoryRuntime;
  /** Variables of every command, beside HOME and PATH. */
  readonly env?: Readonly<Record<string, string>>;
  /** Files by path, relative to the working directory, which is empty otherwise. Objects become JSON. */
  readonly files?: Readonly<Record<string, string | object>>;
  /** A catalogue document that the configuration file names; the built-in one is used otherwise. */
  readonly catalogue?: object;
  /** Of the command and the supervisor. */
  readonly clock?: Clock;
  /**
   * `up`: a supervisor carries out what it can (the usual case); `asked`: it hosts, and leaves `run` to the command;
   * `none`: there is none, and one that is started ends at once.
   */
  readonly supervisor?: 'up' | 'asked' | 'none';
  /** Keyrings of the user, the best first; none by default. */
  readonly keyrings?: readonly Keyring[];
  /** What may stop workloads; nothing does otherwise. */
  readonly policy?: PolicyGate;
  /** How a server calls itself when it is asked for the first time. */
  readonly greet?: (name: string) => Promise<unknown>;
  /** Where this program is said to be. */
  readonly program?: { readonly node: string; readonly entry: string };
  /** The tools that it has then. */
  readonly tools?: readonly object[];
  /** What the proxy of every workload has counted of them. */
  readonly toolCounts?: readonly ToolCount[];
}

/** What one command may find different from the others. */
export interface Situation {
  readonly env?: Readonly<Record<string, string | undefined>>;
  readonly cwd?: string;
  /** Ctrl-C. */
  readonly signal?: AbortSignal;
  /** What is piped into it. */
  readonly input?: string | Uint8Array;
  /** The terminal, which is none by default: output goes to files. */
  readonly terminal?: Partial<Omit<Terminal, 'out' | 'err'>>;
  /** Answers of the person by variable; somebody can be asked when it is there. */
  readonly answers?: Readonly<Record<string, string>>;
  /** The person's answer to every yes or no question; somebody can be asked when it is there. */
  readonly agrees?: boolean | ((question: string) => boolean | Promise<boolean>);
  /** The person answers every question with Ctrl-C. */
  readonly leaves?: boolean;
  /** The supervisor that was started before the command was. */
  readonly woken?: Woken;
  readonly spares?: Spares;
  /** Told of what the command prints on stdout, as it does. */
  readonly onOut?: (text: string) => void;
}

/** What a command did as its caller sees it. */
export interface Outcome {
  readonly status: number;
  readonly out: string;
  readonly err: string;
}

/** What is kept of workloads, sorted. */
export interface Left {
  readonly saved: readonly string[];
  readonly statuses: readonly string[];
  readonly workloads: readonly string[];
}

export const NOTHING_LEFT: Left = { saved: [], statuses: [], workloads: [] };

/** A line of words without quoting, or the words themselves. */
export type CommandLine = string | readonly string[];

const VERSION = '1.0.0';
const NOT_A_TERMINAL = {
  interactive: false,
  liveErr: false,
  liveOut: false,
  colorOut: false,
  colorErr: false,
  width: 100,
  widthOut: Infinity,
};
/** What takes the place of the programs that the machine would run. */
const PROGRAMS = { 'fake:1': idle, 'example/tools:2': idle, fake: idle, 'fake-too': idle };

/**
 * Runs any command line of `skep` in this process, as `main` does: against a runtime in memory, a supervisor in this
 * process, and directories of its own. Everything ends with the test that asked for it; outside of a test its owner calls
 * `close`.
 */
export class CommandUnderTest {
  readonly home: string;
  /** Working directory of the commands. */
  readonly cwd: string;
  readonly places: Places;
  readonly runtime: MemoryRuntime;
  /** Questions that the person was asked, in order. */
  readonly asked: string[] = [];
  /** The kinds of runtime that commands connected to, where they wanted one. */
  readonly wanted: (string | undefined)[] = [];
  /** Processes that were to be ended. */
  readonly ended: { readonly pid: number; readonly how: string }[] = [];
  readonly #machine: MachineUnderTest;
  readonly #ending = new AbortController();
  #supervisor: SupervisorUnderTest | undefined;
  #generation = 0;

  constructor(home: string, machine: MachineUnderTest) {
    this.home = home;
    this.cwd = join(home, 'work');
    this.places = placesOf({ env: {}, home, platform: 'linux', temp: home });
    this.runtime = machine.runtime ?? new MemoryRuntime(PROGRAMS);
    this.#machine = machine;
  }

  /** Runs one command; resolves when it has ended, however it does. */
  async run(line: CommandLine, situation: Situation = {}): Promise<Outcome> {
    const { supervisor = 'up' } = this.#machine;
    if (supervisor !== 'none') await this.startSupervisor();
    const argv = typeof line === 'string' ? line.split(' ').filter((word) => word !== '') : line;
    const said = { out: '', err: '' };
    const context = this.#context(situation, said);
    const { terminal, env } = context;
    const status = await runProgram(SKEP, argv, { terminal, env, open: () => context });
    return { status, ...said };
  }

  /** Runs one command that has to succeed; resolves to what it printed on stdout. */
  async output(line: CommandLine, situation?: Situation): Promise<string> {
    const { status, out, err } = await this.run(line, situation);
    if (status !== 0) throw new Error(`"${String(line)}" ended with ${status}: ${err}`);
    return out;
  }

  /**
   * Runs one command that has to be refused, with nothing printed on stdout and nothing made; resolves to what it says,
   * in which the working directory is called WORK.
   */
  async refusal(line: CommandLine, situation?: Situation): Promise<string> {
    const before = JSON.stringify(await this.left());
    const { status, out, err } = await this.run(line, situation);
    const after = JSON.stringify(await this.left());
    if (status !== 1) throw new Error(`"${String(line)}" ended with ${status}: ${err}`);
    if (out !== '') throw new Error(`"${String(line)}" was refused and printed: ${out}`);
    if (after !== before) throw new Error(`"${String(line)}" was refused and left: ${after}`);
    return err.replaceAll(this.cwd, 'WORK');
  }

  /** What is kept of workloads now. */
  async left(): Promise<Left> {
    const stems = async (directory: string): Promise<string[]> =>
      (await readdir(directory).catch(() => []))
        .filter((name) => name.endsWith('.json'))
        .map((name) => name.slice(0, -'.json'.length))
        .toSorted();
    return {
      saved: await stems(this.places.runConfigsDir),
      statuses: await stems(this.places.statusesDir),
      workloads: (await this.runtime.list()).map(({ name }) => name).toSorted(),
    };
  }

  /** Writes a file, by a path relative to the working directory; resolves to its absolute path. */
  async write(path: string, content: string | object): Promise<string> {
    const absolute = join(this.cwd, path);
    await mkdir(dirname(absolute), { recursive: true });
    await writeFile(absolute, typeof content === 'string' ? content : JSON.stringify(content));
    return absolute;
  }

  /** The text of a file, by a path relative to the working directory. */
  read(path: string): Promise<string> {
    return readFile(resolve(this.cwd, path), 'utf8');
  }

  /** Writes the configuration file of the user. */
  async configure(text: string): Promise<void> {
    await mkdir(this.places.configDir, { recursive: true });
    await writeFile(this.places.configFile, text);
  }

  /** Has a supervisor up; one that is up already is left alone. */
  async startSupervisor(): Promise<void> {
    if (this.#supervisor?.isUp === true) return;
    await this.#supervisor?.end();
    this.#generation += 1;
    this.#supervisor = await startSupervisor({
      context: this.#context({}, { out: '', err: '' }, `supervisor ${this.#generation}`),
      machine: this.#machine,
      runtime: this.runtime,
      signal: this.#ending.signal,
    });
  }

  /** As when the front door of the supervisor has opened. */
  async frontDoorOpened(): Promise<void> {
    await this.#supervisor?.host.tellClients();
  }

  /** Ends the supervisor as a crash does: what it hosts runs on, and its state files say what they said. */
  async killSupervisor(): Promise<void> {
    await this.#supervisor?.end();
  }

  /** Ends everything and removes the directories. Idempotent. */
  async close(): Promise<void> {
    this.#ending.abort();
    await this.#supervisor?.end();
    await rm(this.home, { recursive: true, force: true });
  }

  #context(situation: Situation, said: { out: string; err: string }, started = 'command'): Context {
    const { answers, agrees, leaves, input } = situation;
    const asking = answers !== undefined || agrees !== undefined || leaves === true;
    return {
      ...(situation.woken && { woken: situation.woken }),
      ...(situation.spares && { spares: situation.spares }),
      env: { HOME: this.home, PATH: '/bin', ...this.#machine.env, ...situation.env },
      home: this.home,
      cwd: situation.cwd ?? this.cwd,
      platform: 'linux',
      uid: process.getuid?.(),
      self: { pid: process.pid, started },
      places: this.places,
      program: { node: '/bin/false', entry: '/skep', ...this.#machine.program, version: VERSION },
      terminal: {
        ...NOT_A_TERMINAL,
        interactive: asking,
        ...situation.terminal,
        out(text) {
          said.out += text;
          situation.onOut?.(text);
        },
        err: (text) => void (said.err += text),
      },
      ...(asking ? this.#person(situation) : {}),
      ...(input === undefined ? {} : { readInput: async (max) => Buffer.from(input).subarray(0, max) }),
      keyrings: this.#machine.keyrings ?? [],
      ...(this.#machine.policy && { policy: this.#machine.policy }),
      clock: this.#machine.clock ?? systemClock,
      random: (min, max) => randomInt(min, max + 1),
      fetch,
      signal: situation.signal ?? new AbortController().signal,
      isAlive: (other) => this.#isAlive(other),
      lacksGroups: () => false,
      end: (pid, how) => void this.ended.push({ pid, how }),
      onFault: () => () => {},
      exit() {},
      connectRuntime: async (reference) => {
        this.wanted.push(reference?.kind);
        return runtimeOf(reference, this.#machine, this.runtime);
      },
    };
  }

  #person({ answers = {}, agrees = false, leaves = false }: Situation): Pick<Context, 'ask' | 'confirm'> {
    return {
      ask: async ({ name }) => {
        this.asked.push(name);
        if (leaves) throw new SkepError('run/cancelled');
        return answers[name] ?? '';
      },
      confirm: async (question) => {
        this.asked.push(question);
        if (leaves) throw new SkepError('run/cancelled');
        return typeof agrees === 'function' ? agrees(question) : agrees;
      },
    };
  }

  #isAlive({ pid, started }: ProcessIdentity): boolean {
    if (pid !== process.pid) return false;
    return started === 'command' || (this.#supervisor?.isUp === true && started === this.#supervisor.started);
  }
}

/** What in a text could steer a terminal, or hide what it shows: control and format characters but line ends and tabs. */
export function controlsIn(text: string): readonly string[] {
  return [...text.matchAll(/[\p{Cc}\p{Cf}]/gu)]
    .map(([character]) => character)
    .filter((one) => one !== '\n' && one !== '\t');
}

/** A signal for a command, and the keys that send it. */
export function ctrlC(): { readonly signal: AbortSignal; readonly press: () => void } {
  const controller = new AbortController();
  return { signal: controller.signal, press: () => controller.abort(new SkepError('run/cancelled')) };
}

/** A machine for command lines; see `CommandUnderTest`. */
export async function commandUnderTest(machine: MachineUnderTest = {}): Promise<CommandUnderTest> {
  const skep = await openCommandUnderTest(machine);
  onTestFinished(() => skep.close());
  return skep;
}

/** For several tests, which close it after the last. */
export async function openCommandUnderTest(machine: MachineUnderTest = {}): Promise<CommandUnderTest> {
  const skep = new CommandUnderTest(await mkdtemp(join(tmpdir(), 'skep-command-')), machine);
  await mkdir(skep.cwd);
  for (const [path, content] of Object.entries(machine.files ?? {})) await skep.write(path, content);
  if (machine.catalogue !== undefined) {
    await skep.configure(
      `local_registry_path: ${await skep.write('../catalogue.json', machine.catalogue)}\n`,
    );
  }
  return skep;
}

interface SupervisorUnderTest {
  readonly host: Host;
  readonly started: string;
  readonly isUp: boolean;
  end(): Promise<void>;
}

interface StartingSupervisor {
  readonly context: Context;
  readonly machine: MachineUnderTest;
  readonly runtime: MemoryRuntime;
  readonly signal: AbortSignal;
}

async function startSupervisor({
  context,
  machine,
  runtime,
  signal,
}: StartingSupervisor): Promise<SupervisorUnderTest> {
  const ending = new AbortController();
  const both = AbortSignal.any([signal, ending.signal]);
  const host = openHostUnderTest({ context, machine, runtime, version: VERSION });
  const { places, self, clock, isAlive } = context;
  const connectRuntime = async (): Promise<MemoryRuntime> => runtime;
  const { over } = await testServer({
    places,
    host,
    signal: both,
    owner: { ...self, state: places.stateDir },
    greets: { ...self, version: VERSION },
    resume: await resume({ host, places, clock, isAlive, signal: both, log: silentLog }),
    ...(machine.supervisor === 'asked'
      ? {}
      : { run: (request, ways) => runForCommand(request, ways, { context, host, connectRuntime }) }),
  });
  let isUp = true;
  void over.finally(() => (isUp = false));
  return {
    host,
    started: self.started,
    get isUp() {
      return isUp;
    },
    async end() {
      ending.abort();
      await over;
      await host.release();
    },
  };
}

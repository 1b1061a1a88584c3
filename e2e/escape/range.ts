import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, chownSync, closeSync, copyFileSync, lchownSync, mkdirSync, mkdtempSync, openSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'; // prettier-ignore
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { Readable } from 'node:stream';
import { text } from 'node:stream/consumers';
import type { Mount } from '@skep/cli/permissions/mounts.ts';
import { engineSocket } from '../require.ts';
import { commandOf, type Attempt, type Facts } from './attempt.ts';

/** A user of this machine without an entry. */
export const ORDINARY = 1234;
/** Where the shell that starts everything left a file open. */
const LEFT_OPEN = 40;

/** A child whose output is read. */
type Started = ChildProcess & { readonly stdout: Readable; readonly stderr: Readable };

/** Starts a command somewhere else, as on another machine. */
export type Through = (command: readonly string[]) => readonly string[];
const plainly: Through = (command) => command;

/**
 * What attempts are about: a person's home directory, what Skep keeps of others, services and a process, all of them
 * stand-ins that give a word away. Belongs to one user of the machine; only root can make one for somebody else.
 */
export class Range implements AsyncDisposable {
  readonly directory: string;
  /** As the programs of that user see it, unconfined. */
  readonly facts: Facts;
  readonly #uid: number;
  readonly #made: AsyncDisposableStack;

  private constructor(uid: number, directory: string, facts: Facts, made: AsyncDisposableStack) {
    [this.#uid, this.directory, this.facts, this.#made] = [uid, directory, facts, made];
  }

  static async make(uid: number): Promise<Range> {
    await using made = new AsyncDisposableStack();
    const directory = mkdtempSync(path.join(tmpdir(), 'skep-range-'));
    made.defer(() => rmSync(directory, { recursive: true, force: true }));
    const places = makeFiles(directory, uid);
    const abstract = `skep-range-${path.basename(directory)}`;
    const [service] = await Promise.all([
      serve({ port: 0, host: '::' }, made),
      serve({ path: path.join(places.machine, 'supervisor.sock') }, made),
      serve({ path: path.join(places.machine, 'agent.sock') }, made),
      serve({ path: `\0${abstract}` }, made),
    ]);
    for (const name of ['supervisor.sock', 'agent.sock'])
      chownSync(path.join(places.machine, name), uid, uid);
    const victim = await startVictim(places.home, uid, made);
    const { port } = service.address() as net.AddressInfo;
    const facts = {
      ...places,
      covered: places.writable,
      program: path.join(places.scratch, 'program.js'),
      abstract,
      port,
      engine: engineSocket(),
      victim: victim.pid ?? 0,
      victimFd: 9,
    };
    return new Range(uid, directory, facts, made.move());
  }

  /** What of it a server is given: something to read, something to write, and what ignore files hide of both. */
  get mounts(): { readonly mounts: readonly Mount[]; readonly overlays: readonly Mount[] } {
    const at = (name: string): string => path.join(this.directory, name);
    const over = (source: string, target: string): Mount => ({ source: at(source), target, readOnly: true });
    return {
      mounts: [
        { source: at('shown'), target: '/shown', readOnly: true },
        { source: at('writable'), target: '/data', readOnly: false },
      ],
      overlays: [
        over('nothing/file', '/data/.env'),
        over('writable/.skepignore', '/data/.skepignore'),
        over('nothing/file', '/data/deep/.env'),
        over('nothing/file', '/shown/.env'),
        over('nothing/directory', '/shown/keys'),
      ],
    };
  }

  /** The facts as a confined program is told them: where it finds what it was given, and the rest unchanged. */
  confinedFacts(program: string): Facts {
    return { ...this.facts, shown: '/shown', writable: '/data', covered: '/data', scratch: '/tmp', program };
  }

  /** A command of this user, with what a person's shell hands on: a variable, and a file that was left open. */
  start(command: readonly string[], through: Through = plainly): Started {
    const [file = '', ...args] = through([...becoming(this.#uid), ...command]);
    const left = openSync(path.join(this.directory, 'machine/left-open'), 'r');
    const between = Array.from({ length: LEFT_OPEN - 3 }, () => 'ignore' as const);
    const env = { PATH: process.env['PATH'], HOME: this.directory, VICTIM: 'TOKEN-variable' };
    const child = spawn(file, args, {
      stdio: ['ignore', 'pipe', 'pipe', ...between, left],
      env,
      timeout: 60_000,
    });
    closeSync(left);
    const { stdout, stderr } = child;
    if (!stdout || !stderr) throw new TypeError('no pipes');
    return Object.assign(child, { stdout, stderr });
  }

  /** What an attempt gives where nothing confines it. */
  async unconfined(attempt: Attempt, through: Through = plainly): Promise<unknown> {
    const [file, args] = commandOf(attempt, this.facts);
    const child = this.start([file === 'node' ? process.execPath : file, ...args], through);
    const [stdout] = await Promise.all([text(child.stdout), once(child, 'close')]);
    return { stdout };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#made[Symbol.asyncDispose]();
  }
}

const becoming = (uid: number): readonly string[] =>
  process.getuid?.() === uid ? [] : ['setpriv', `--reuid=${uid}`, `--regid=${uid}`, '--clear-groups', '--'];

const FILES: Readonly<Record<string, string>> = {
  'machine/home/.ssh/id_ed25519': 'TOKEN-key',
  'machine/home/.env': 'TOKEN-env',
  'machine/home/.bash_history': 'TOKEN-history',
  'machine/home/.bashrc': '',
  'machine/home/.mozilla/logins.json': 'TOKEN-logins',
  'machine/home/.config/autostart/x.desktop': '',
  'machine/data/other/notes': 'TOKEN-notes',
  'machine/data/sandbox/own/status': '',
  'machine/state/runconfigs/other.json': 'TOKEN-configuration',
  'machine/state/secrets': 'TOKEN-secrets',
  'machine/left-open': 'TOKEN-open',
  'shown/plain': '',
  'shown/.env': 'TOKEN-hidden',
  'shown/keys/key': 'TOKEN-hidden',
  'writable/.env': 'TOKEN-hidden',
  'writable/.skepignore': '.env',
  'writable/deep/.env': 'TOKEN-hidden',
  'nothing/file': '',
  'scratch/program.js': '',
};

function makeFiles(directory: string, uid: number) {
  const at = (name: string): string => path.join(directory, name);
  const folders = new Set(Object.keys(FILES).flatMap((name) => parentsOf(name)));
  for (const name of [...folders, 'nothing/directory', 'prober']) mkdirSync(at(name), { recursive: true });
  for (const [name, content] of Object.entries(FILES)) writeFileSync(at(name), content);
  symlinkSync(at('machine/home/.ssh/id_ed25519'), at('writable/link'));
  for (const name of [...folders, ...Object.keys(FILES), 'nothing/directory', 'prober'])
    chownSync(at(name), uid, uid);
  chownSync(directory, uid, uid);
  // Started by root, a server is whoever owns what it may write.
  const writer = uid === 0 ? ORDINARY : uid;
  for (const name of [
    'writable',
    ...Object.keys(FILES).filter((one) => one.startsWith('writable/')),
    'writable/deep',
  ])
    chownSync(at(name), writer, writer);
  lchownSync(at('writable/link'), writer, writer);
  copyFileSync('/usr/bin/id', at('writable/who'));
  chmodSync(at('writable/who'), 0o4755);
  copyFileSync('/etc/shadow', at('machine/shadow'));
  return {
    machine: at('machine'),
    home: at('machine/home'),
    shown: at('shown'),
    writable: at('writable'),
    scratch: at('scratch'),
  };
}

function parentsOf(name: string): readonly string[] {
  const parts = name.split('/').slice(0, -1);
  return parts.map((_part, at) => parts.slice(0, at + 1).join('/'));
}

/** Gives a word away to whoever comes. */
async function serve(where: net.ListenOptions, made: AsyncDisposableStack): Promise<net.Server> {
  const server = net.createServer((socket) => void socket.on('error', () => {}).end('TOKEN-service'));
  await new Promise<void>((resolve) => void server.listen(where, resolve));
  made.defer(() => void server.close());
  return server;
}

/** A process of the same user with a word in its arguments and variables, and a file open that has no name any more. */
async function startVictim(home: string, uid: number, made: AsyncDisposableStack): Promise<ChildProcess> {
  const script = 'exec 9<"$0/.env"; echo ready; while read -r line; do :; done';
  const [file, ...args] = [...becoming(uid), '/bin/sh', '-c', script, home, 'TOKEN-command'];
  const child = spawn(file, args, {
    cwd: home,
    env: { VICTIM: 'TOKEN-environment' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  made.defer(() => void child.kill('SIGKILL'));
  await once(child.stdout ?? child, 'data');
  return child;
}

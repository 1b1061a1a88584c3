import { spawnSync } from 'node:child_process';
import { closeSync, constants, openSync } from 'node:fs';
import { Socket } from 'node:net';
import { StringDecoder } from 'node:string_decoder';
import { setTimeout as pause } from 'node:timers/promises';
import type { SeenFiles, WorkloadSpec } from '../../runtime.ts';
import { CONFINED_HOME } from '../confine.ts';
import { findProgram, type Environment } from '../../find-program.ts';
import { TraceReader } from './read-trace.ts';

/** What strace(1) is asked for: calls with paths and of sockets, of all processes, as a bystander that a server's parents do not notice. */
const OPTIONS = ['-D', '-f', '-q', '-y', '-s', '0', '-e', 'trace=%file,connect,bind'];
const PROOF_MS = 5_000;
/** How long what was traced may take to be read to its end, in milliseconds. */
const REST_MS = 5_000;

/** Absolute path of a strace(1) that can trace here, or why there is none. */
export function findTracer(env: Environment): { readonly program: string } | { readonly missing: string } {
  const program = findProgram('strace', env);
  if (program === undefined) return { missing: 'strace is not installed' };
  const tried = spawnSync(program, [...OPTIONS, '-o', '/dev/null', '--', '/bin/true'], {
    timeout: PROOF_MS,
    env: {},
    encoding: 'utf8',
  });
  if (tried.status === 0 && tried.stderr === '') return { program };
  const [said = ''] = tried.stderr.split('\n');
  return { missing: `strace may not trace programs here (${said || 'it failed'})` };
}

/** Places inside that say nothing of what a server needs of this machine. */
const SYSTEM = [
  '/usr',
  '/bin',
  '/sbin',
  '/lib',
  '/lib32',
  '/lib64',
  '/libx32',
  '/etc',
  '/proc',
  '/sys',
  '/dev',
];
const OWN = ['/nix', '/skep', '/app', CONFINED_HOME];

/** Disposed of when the command was started, or not. */
export interface Tracing extends Disposable {
  /** The command that is traced while it runs the given one. */
  readonly within: (command: readonly string[]) => readonly string[];
}

/** Everything that one workload is seen to do with files, over all its starts. */
export class Watch {
  readonly #missing: string | undefined;
  readonly #traces: { readonly reader: TraceReader; readonly over: Promise<void> }[] = [];

  /** `missing`: why nothing can be traced. */
  constructor(missing?: string) {
    this.#missing = missing;
  }

  /** Traces one start. `fifo` has to be there; `program` is the first program inside. */
  begin(tracer: string, { spec, program, fifo, own }: Traced): Tracing {
    const reader = new TraceReader({
      program,
      cwd: CONFINED_HOME,
      whole: spec.mounts.map(({ target }) => target),
      ignored: [...SYSTEM, ...OWN, ...own],
    });
    const { O_NONBLOCK, O_RDONLY, O_WRONLY } = constants;
    const source = new Socket({ fd: openSync(fifo, O_RDONLY | O_NONBLOCK), readable: true, writable: false });
    // Until strace has it open, somebody must, or its end would be read at once.
    const held = openSync(fifo, O_WRONLY | O_NONBLOCK);
    const decoder = new StringDecoder('utf8');
    source.on('data', (bytes: Buffer) => reader.write(decoder.write(bytes)));
    const over = new Promise<void>((resolve) => void source.once('close', resolve).once('error', resolve));
    this.#traces.push({ reader, over });
    return {
      within: (command) => [tracer, ...OPTIONS, '-o', fifo, '--', ...command],
      [Symbol.dispose]: () => closeSync(held),
    };
  }

  /** What was seen; waits for what was not read yet of a workload that has ended. */
  async seen(): Promise<SeenFiles> {
    if (this.#missing !== undefined) {
      return {
        paths: new Map(),
        complete: false,
        unseen: [`what it does with files, because ${this.#missing}`],
      };
    }
    const over = Promise.all(this.#traces.map((one) => one.over));
    const late = new AbortController();
    await Promise.race([over, pause(REST_MS, undefined, { signal: late.signal }).catch(() => {})]);
    late.abort();
    const readers = this.#traces.map(({ reader }) => reader);
    const paths = new Map(readers.flatMap(({ paths: some }) => [...some]));
    for (const [path, { changes, there }] of readers.flatMap((one) => [...one.paths])) {
      const known = paths.get(path);
      paths.set(path, { changes: changes || known?.changes === true, there: there || known?.there === true });
    }
    const unseen = [
      ...(readers.every(({ ended }) => ended) ? [] : ['what it did with files after strace had ended']),
      ...(readers.some(({ overflowed }) => overflowed) ? ['some of the many paths that it asked for'] : []),
    ];
    const again = readers.length > 1 ? ['hosts that it reached before it was started again'] : [];
    return { paths, complete: unseen.length === 0, unseen: [...unseen, ...again] };
  }
}

export interface Traced {
  readonly spec: Pick<WorkloadSpec, 'mounts'>;
  /** The first program inside, as it is called there. */
  readonly program: string;
  readonly fifo: string;
  /** Places inside that are the workload's own. */
  readonly own: readonly string[];
}

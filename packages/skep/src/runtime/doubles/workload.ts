import { EventEmitter, once } from 'node:events';
import { PassThrough, Writable } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Attachment, LogChunk, LogRequest, Observed, WorkloadSpec } from '../runtime.ts';
import type { MemoryProgram } from './program.ts';

export interface MemoryWorkloadOptions {
  readonly spec: WorkloadSpec;
  readonly program: MemoryProgram;
  /** The time of the runtime it belongs to; later with every call. */
  readonly now: () => Date;
}

/** Exit statuses of a process that the polite and the hard signal ended. */
const TERMINATED = 143;
const KILLED = 137;

/** One workload of the runtime in memory. Emits `changed` whenever it ends or writes to its log. */
export class MemoryWorkload {
  readonly spec: WorkloadSpec;
  readonly #program: MemoryProgram;
  readonly #now: () => Date;
  readonly #createdAt: Date;
  readonly #changes = new EventEmitter().setMaxListeners(0);
  readonly #attached = new Set<PassThrough>();
  #startedAt: Date | undefined;
  #exitCode: number | undefined;
  #stubborn = false;
  #input = new PassThrough();
  readonly #log: { readonly at: Date; readonly text: string }[] = [];
  starts = 0;

  constructor({ spec, program, now }: MemoryWorkloadOptions) {
    this.spec = spec;
    this.#program = program;
    this.#now = now;
    this.#createdAt = now();
  }

  get running(): boolean {
    return this.#startedAt !== undefined && this.#exitCode === undefined;
  }

  get over(): boolean {
    return this.#exitCode !== undefined;
  }

  observe(): Observed {
    const started = this.#startedAt === undefined ? {} : { startedAt: this.#startedAt };
    return {
      name: this.spec.name,
      state: this.running ? 'running' : this.over ? 'exited' : 'created',
      ...(this.#exitCode === undefined ? {} : { exitCode: this.#exitCode }),
      reference: this.spec.reference,
      labels: this.spec.labels,
      createdAt: this.#createdAt,
      ...started,
    };
  }

  start(): void {
    if (this.over) this.#input = new PassThrough();
    this.#exitCode = undefined;
    this.#startedAt = this.#now();
    this.#stubborn = false;
    this.starts += 1;
    this.#program({
      args: this.spec.args,
      env: this.spec.env,
      stdin: this.#input,
      write: (text) => this.#attached.forEach((stdout) => void stdout.write(text)),
      warn: (text) => this.say(text),
      exit: (code) => this.end(code),
      ignoreTermination: () => (this.#stubborn = true),
    });
  }

  attach(): Attachment {
    const stdout = new PassThrough();
    this.#attached.add(stdout);
    const input = this.#input;
    // Ending an attachment does not end the server's input.
    const stdin = new Writable({ write: (chunk, encoding, done) => input.write(chunk, encoding, done) });
    return { stdin, stdout, close: () => this.#detach(stdout) };
  }

  /** Ends it with an exit status; one that has ended already is left alone. */
  end(exitCode: number): void {
    if (this.over) return;
    this.#exitCode = exitCode;
    for (const stdout of this.#attached) this.#detach(stdout);
    this.#changes.emit('changed');
  }

  /** What a signal does. Time passes at once here, so a server that ignores the polite one is killed without a wait. */
  stop(): void {
    if (this.running) this.end(this.#stubborn ? KILLED : TERMINATED);
  }

  /** Adds to its log. */
  say(text: string): void {
    this.#log.push({ at: this.#now(), text });
    this.#changes.emit('changed');
  }

  async wait(signal: AbortSignal): Promise<number> {
    while (this.#exitCode === undefined) await this.#change(signal);
    return this.#exitCode;
  }

  async *logs(request: LogRequest): AsyncGenerator<LogChunk> {
    const { follow, tail, signal } = request;
    const before = this.#written(request);
    let at = tail === undefined ? 0 : before.length - lastLines(before, tail).length;
    for (;;) {
      const written = this.#written(request);
      const text = written.slice(at);
      at = written.length;
      if (text !== '') yield { stream: 'stderr', bytes: Buffer.from(text) };
      if (signal.aborted) return;
      if (at < this.#written(request).length) continue;
      if (!follow || !this.running) return;
      await this.#change(signal).catch(() => {
        // Aborted: the loop sees it.
      });
    }
  }

  #written({ since = 0, timestamps }: LogRequest): string {
    return this.#log
      .filter(({ at }) => at.getTime() >= since)
      .map(({ at, text }) => (timestamps ? text.replaceAll(/^(?=[^])/gm, `${at.toISOString()} `) : text))
      .join('');
  }

  #detach(stdout: PassThrough): void {
    this.#attached.delete(stdout);
    stdout.end();
  }

  async #change(signal: AbortSignal): Promise<void> {
    try {
      await once(this.#changes, 'changed', { signal });
    } catch (cause) {
      throw new SkepError('runtime/aborted', { cause });
    }
  }
}

function lastLines(text: string, count: number): string {
  const lines = text.split(/(?<=\n)/);
  return lines.slice(Math.max(0, lines.length - count)).join('');
}

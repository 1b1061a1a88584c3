import { createInterface, type Interface } from 'node:readline';
import type { Attachment } from '../runtime.ts';

interface Answer {
  readonly id: number;
  readonly result?: unknown;
  readonly error?: { readonly message: string; readonly data?: string };
}

/** A failed call; `code` is what the probe server gave, for example `EACCES`. */
export class ProbeError extends Error {
  override readonly name = 'ProbeError';
  readonly code: string;

  constructor(message: string, code: string) {
    super(message);
    this.code = code;
  }
}

/** Speaks line-framed JSON-RPC with the probe server of the contract test over one attachment. */
export class ProbeCaller {
  readonly #attachment: Attachment;
  readonly #lines: Interface;
  readonly #waiting = new Map<
    number,
    { resolve: (value: unknown) => void; reject: (error: Error) => void }
  >();
  #next = 1;

  constructor(attachment: Attachment) {
    this.#attachment = attachment;
    this.#lines = createInterface({ input: attachment.stdout });
    this.#lines.on('line', (line) => this.#take(JSON.parse(line) as Answer));
    this.#lines.once('close', () => {
      for (const one of this.#waiting.values()) one.reject(new ProbeError('the attachment ended', 'ENDED'));
      this.#waiting.clear();
    });
  }

  call(method: string, params: object = {}): Promise<unknown> {
    const id = this.#next;
    this.#next += 1;
    return new Promise((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject });
      this.#attachment.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', id, method, params })}\n`);
    });
  }

  /** Resolves when stdout has ended. */
  ended(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#attachment.stdout.readableEnded || this.#attachment.stdout.destroyed) resolve();
      else this.#lines.once('close', resolve);
    });
  }

  close(): void {
    this.#attachment.close();
  }

  #take(answer: Answer): void {
    const waiting = this.#waiting.get(answer.id);
    this.#waiting.delete(answer.id);
    if (answer.error) waiting?.reject(new ProbeError(answer.error.message, answer.error.data ?? ''));
    else waiting?.resolve(answer.result);
  }
}

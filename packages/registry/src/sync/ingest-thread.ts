import { parentPort, Worker, workerData } from 'node:worker_threads';
import { CODES, type Code } from '@skep/core/errors/codes.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ingest, type Ingest, type Ingested, type IngestInput } from './ingest.ts';

/** Below this a catalogue is read in less time than a thread needs to start. */
const WORTH_A_THREAD = 512 * 1024;
/**
 * The same while nobody waits for answers: then a thread of its own time and memory only pays for a catalogue that several
 * of them read side by side.
 */
const WORTH_A_THREAD_AT_START = 16 * 1024 * 1024;

/** Tells the program's entry file that it was started to do this work and not to be the program. */
export const INGEST_THREAD = 'skep-registry ingest';

type Answer = { readonly done: Ingested } | { readonly failed: PlainError };

interface PlainError {
  readonly code?: Code;
  readonly message: string;
  readonly hint: string;
  readonly detail: Readonly<Record<string, unknown>>;
}

/**
 * Reads large catalogues in a thread of their own, so that requests are answered meanwhile. `entry` is the program's own
 * entry file, the one file that exists in a bundle as well; `isServing` tells whether there are requests to answer.
 */
export function ingestInThread(entry: URL, isServing: () => boolean): Ingest {
  return async (input, signal) => {
    signal.throwIfAborted();
    const worthIt = isServing() ? WORTH_A_THREAD : WORTH_A_THREAD_AT_START;
    return input.bytes.byteLength < worthIt ? ingest(input) : startThread(entry, input, signal);
  };
}

/** The thread's side: reads the input it was started with and answers once. */
export function runIngestThread(): void {
  parentPort?.postMessage(answerTo(workerData.input), []);
}

function answerTo(input: IngestInput): Answer {
  try {
    return { done: ingest(input) };
  } catch (error) {
    if (!(error instanceof SkepError)) throw error;
    const { code, message, hint, detail } = error;
    return { failed: { code, message, hint, detail } };
  }
}

async function startThread(entry: URL, input: IngestInput, signal: AbortSignal): Promise<Ingested> {
  const worker = new Worker(entry, { workerData: { task: INGEST_THREAD, input } });
  const stop = (): void => void worker.terminate();
  signal.addEventListener('abort', stop, { once: true });
  try {
    const answer = await answerOf(worker);
    signal.throwIfAborted();
    if ('done' in answer) return answer.done;
    throw revived(answer.failed);
  } finally {
    signal.removeEventListener('abort', stop);
    await worker.terminate();
  }
}

function answerOf(worker: Worker): Promise<Answer> {
  return new Promise((resolve, reject) => {
    worker.once('message', resolve);
    worker.once('error', reject);
    worker.once('exit', () =>
      reject(new SkepError('internal/bug', { message: 'the reading of a catalogue was stopped' })),
    );
  });
}

function revived({ code = 'internal/bug', ...rest }: PlainError): SkepError {
  return new SkepError(code in CODES ? code : 'internal/bug', rest);
}

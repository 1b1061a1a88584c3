import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { StartEvent } from './events.ts';
import type { Failure } from './failure.ts';
import type { Endpoint } from './host.ts';
import type { Readiness } from './ready.ts';

/** One line of the supervisor after its greeting: events, then a result or an error. */
export type Answer =
  | { readonly event: StartEvent }
  | { readonly error: Failure }
  | { readonly result: unknown };

/**
 * Reads a line of the supervisor. Fails with `supervisor/protocol`. Without a schema, here and below, because loading what
 * interprets schemas takes longer than many an answer.
 */
export function readAnswer(line: unknown): Answer {
  if (isRecord(line)) {
    if ('result' in line) return { result: line['result'] };
    const answer = readEvent(line['event']) ?? readFailure(line['error']);
    if (answer) return answer;
  }
  throw unexpected();
}

/** The result of `start` and `run`. Fails with `supervisor/protocol`. */
export function readEndpoint(result: unknown): Endpoint {
  if (!isRecord(result)) throw unexpected();
  const { url, port, readiness } = result;
  if (typeof url !== 'string' || typeof port !== 'number') throw unexpected();
  return readiness === undefined ? { url, port } : { url, port, readiness: readReadiness(readiness) };
}

function readReadiness(value: unknown): Readiness {
  if (isRecord(value)) {
    const { is, server } = value;
    if (is === 'silent' || is === 'unchecked') return { is };
    if (is === 'answered') return typeof server === 'string' ? { is, server } : { is };
  }
  throw unexpected();
}

function readEvent(value: unknown): Answer | undefined {
  if (!isRecord(value)) return undefined;
  const { kind, title, text, line, name, url } = value;
  if (kind === 'step' && typeof title === 'string') return { event: { kind, title } };
  if ((kind === 'warning' || kind === 'told') && typeof text === 'string') return { event: { kind, text } };
  if (kind === 'output' && typeof line === 'string') return { event: { kind, line } };
  if (kind === 'saved' && typeof name === 'string' && typeof url === 'string') {
    return { event: { kind, name, url } };
  }
  return undefined;
}

function readFailure(value: unknown): Answer | undefined {
  if (!isRecord(value)) return undefined;
  const { code, message, hint, detail } = value;
  if (typeof code !== 'string' || typeof message !== 'string' || typeof hint !== 'string') return undefined;
  return { error: { code, message, hint, detail: isRecord(detail) ? detail : {} } };
}

function unexpected(): SkepError {
  return new SkepError('supervisor/protocol');
}

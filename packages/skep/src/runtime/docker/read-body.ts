import type { IncomingMessage } from 'node:http';
import type { Endpoint } from './endpoint.ts';
import { unreachable } from './failure.ts';

/** Reads a whole answer as text. A connection that breaks in the middle is an error, never a short text. */
export async function readBody(
  response: IncomingMessage,
  endpoint: Endpoint,
  signal?: AbortSignal,
): Promise<string> {
  const chunks: Buffer[] = [];
  try {
    for await (const chunk of response) chunks.push(chunk as Buffer);
  } catch (error) {
    throw unreachable(endpoint, error, signal);
  }
  return Buffer.concat(chunks).toString('utf8');
}

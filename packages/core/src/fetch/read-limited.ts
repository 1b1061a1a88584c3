import { SkepError } from '../errors/skep-error.ts';

/**
 * All bytes of a body of at most `maxBytes`. `declared` is the Content-Length header: a body that announces too much is
 * refused before reading. Fails with `fetch/too-large`; leaving the loop destroys the stream.
 */
export async function readLimited(
  body: AsyncIterable<Uint8Array>,
  maxBytes: number,
  declared?: string,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let total = Number(declared ?? 0);
  if (total > maxBytes) throw tooLarge(maxBytes);
  total = 0;
  for await (const chunk of body) {
    total += chunk.byteLength;
    if (total > maxBytes) throw tooLarge(maxBytes);
    chunks.push(chunk);
  }
  return Buffer.concat(chunks, total);
}

function tooLarge(maxBytes: number): SkepError {
  return new SkepError('fetch/too-large', {
    message: `the answer is larger than ${maxBytes} bytes`,
    detail: { maxBytes },
  });
}

import type { ServerResponse } from 'node:http';
import type { Readable } from 'node:stream';
import { endWith } from './end-with.ts';

interface Relaying {
  /** Bytes that are announced; 0 where that is not known. */
  readonly length: number;
  readonly ended: (error: Error) => void;
}

/** As `pipeline`, which makes an error to abort a signal with at every end: that takes longer than all of a short answer. */
export function relay(body: Readable, res: ServerResponse, { length, ended }: Relaying): void {
  body.on('error', ended).on('close', () => {
    if (!body.readableEnded) res.destroy();
  });
  res.on('close', () => {
    if (!body.readableEnded) body.destroy();
  });
  // Most answers come in one piece, which goes on with its head as one.
  if (length === 0) body.pipe(res);
  else {
    // An answer may announce the body of another: to HEAD, or as 304 (RFC 9110 §8.6).
    body.on('end', () => void (res.writableEnded || res.end()));
    body.once('data', (first: Buffer) => {
      if (first.length === length) endWith(res, first);
      else {
        body.pause();
        res.write(first);
        body.pipe(res);
      }
    });
  }
}

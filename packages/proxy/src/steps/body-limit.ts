import type { IncomingMessage } from 'node:http';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Step } from '../chain.ts';

/** Bounds what a later step may read. A declared length over the limit is refused before a byte of it is read. */
export const bodyLimit =
  (limitBytes: number): Step =>
  async (call, next) => {
    if (Number(call.req.headers['content-length'] ?? 0) > limitBytes) {
      throw new SkepError('proxy/body-too-large');
    }
    let body: Promise<Buffer> | undefined;
    call.readBody = () => (body ??= readWithin(call.req, limitBytes));
    await next();
  };

const readWithin = (req: IncomingMessage, limitBytes: number): Promise<Buffer> =>
  new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    let size = 0;
    req.on('data', (chunk: Buffer) => {
      size += chunk.length;
      if (size <= limitBytes) chunks.push(chunk);
      else {
        req.pause();
        reject(new SkepError('proxy/body-too-large'));
      }
    });
    req.on('end', () =>
      resolve(chunks.length === 1 && chunks[0] !== undefined ? chunks[0] : Buffer.concat(chunks)),
    );
    req.on('error', reject);
    req.on('close', () => {
      if (!req.complete) reject(new SkepError('proxy/client-gone'));
    });
  });

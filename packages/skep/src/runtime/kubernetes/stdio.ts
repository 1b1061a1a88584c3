import { PassThrough, Writable, type Duplex } from 'node:stream';
import { AttachedInput } from '../attached-input.ts';
import type { Attachment } from '../runtime.ts';

/** The stdio of a pod that is there. */
export function attachment(stream: Duplex): Attachment {
  stream.on('error', () => stream.destroy());
  const stdin = new AttachedInput(stream);
  stream.once('close', () => stdin.destroy());
  return { stdin, stdout: stream, close: () => void stream.destroy() };
}

/** The stdio of a pod that is to come: what is written waits for it. Ends where it does not come. */
export function laterAttachment(coming: Promise<Duplex>, giveUp: () => void): Attachment {
  const stdout = new PassThrough();
  const reached = coming.then((stream) => {
    stream.on('error', () => stream.destroy()).once('close', () => stdout.end());
    stream.pipe(stdout);
    return stream;
  });
  reached.catch(() => stdout.end());
  const stdin = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      reached.then(
        (stream) => stream.write(chunk, done),
        () => {
          stdin.destroy();
          done();
        },
      );
    },
  });
  const close = (): void => {
    giveUp();
    reached.then(
      (stream) => stream.destroy(),
      () => undefined,
    );
    stdout.end();
  };
  return { stdin, stdout, close };
}

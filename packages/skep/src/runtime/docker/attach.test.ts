import { once } from 'node:events';
import { Duplex } from 'node:stream';
import { expect, test } from 'vitest';
import { attachment } from './attach.ts';

/** Stands in for the hijacked connection. */
class Connection extends Duplex {
  readonly written: string[] = [];
  override _read(): void {}
  override _write(chunk: Buffer, _encoding: string, done: () => void): void {
    this.written.push(chunk.toString());
    done();
  }
}

function frame(kind: number, text: string): Buffer {
  const head = Buffer.from([kind, 0, 0, 0, 0, 0, 0, 0]);
  head.writeUInt32BE(Buffer.byteLength(text), 4);
  return Buffer.concat([head, Buffer.from(text)]);
}

const nothing = Buffer.alloc(0);

test('hands over stdout and leaves stderr to the log', async () => {
  const socket = new Connection();
  const { stdout } = attachment({ socket, head: frame(1, 'a') });
  socket.push(Buffer.concat([frame(2, 'loud'), frame(1, 'b')]));
  socket.push(null);
  let text = '';
  for await (const bytes of stdout) text += String(bytes);
  expect(text).toBe('ab');
});

test('ends stdout without an error when the connection is cut, and writes to it fail quietly', async () => {
  const socket = new Connection();
  const { stdout, stdin } = attachment({ socket, head: nothing });
  stdout.resume();
  socket.destroy(new Error('cut'));
  await once(stdout, 'end');
  expect(stdin.destroyed).toBe(true);
});

test('holds the connection back while nobody reads', async () => {
  const socket = new Connection();
  const { stdout } = attachment({ socket, head: nothing });
  const large = 'x'.repeat(200_000);
  socket.push(frame(1, large));
  await new Promise(setImmediate);
  expect(socket.isPaused()).toBe(true);
  let length = 0;
  stdout.on('data', (bytes: Buffer) => (length += bytes.length));
  socket.push(frame(1, large));
  socket.push(null);
  await once(stdout, 'end');
  expect(length).toBe(400_000);
});

test('passes on what is written and never ends the connection', async () => {
  const socket = new Connection();
  const { stdin } = attachment({ socket, head: nothing });
  stdin.write('{"id":1}\n');
  stdin.end();
  await once(stdin, 'finish');
  expect(socket.written).toEqual(['{"id":1}\n']);
  expect(socket.writableEnded).toBe(false);
});

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { bridgeScript } from './bridge.ts';

test('leads connections to a port over the socket, and does not keep the program running', async () => {
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-bridge-'));
  const socket = path.join(directory, 'socket');
  const outside = net.createServer((connection) => connection.pipe(connection));
  const unused = net.createServer().listen(0, '127.0.0.1');
  try {
    outside.listen(socket);
    await Promise.all([once(outside, 'listening'), once(unused, 'listening')]);
    const { port } = unused.address() as AddressInfo;
    unused.close();
    await once(unused, 'close');
    await writeFile(path.join(directory, 'bridge.cjs'), bridgeScript(socket, port));
    const program = `const c = require('node:net').connect(${port}, '127.0.0.1', () => c.end('there and back'));
      c.pipe(process.stdout);`;
    const child = spawn(process.execPath, ['--require', path.join(directory, 'bridge.cjs'), '-e', program]);
    const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
    expect([said, code]).toEqual(['there and back', 0]);
  } finally {
    outside.close();
    await rm(directory, { recursive: true });
  }
});

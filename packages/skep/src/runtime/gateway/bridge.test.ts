import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import net, { type AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { bridgeAroundScript, bridgeScript } from './bridge.ts';

interface Bridge {
  readonly directory: string;
  /** The socket that the bridge leads to, which answers with what it is sent. */
  readonly socket: string;
  readonly port: number;
}

async function surroundings(): Promise<Bridge> {
  const directory = await mkdtemp(path.join(tmpdir(), 'skep-bridge-'));
  const socket = path.join(directory, 'socket');
  const outside = net.createServer((connection) => connection.pipe(connection)).listen(socket);
  onTestFinished(async () => {
    outside.close();
    await rm(directory, { recursive: true });
  });
  const unused = net.createServer().listen(0, '127.0.0.1');
  await Promise.all([once(outside, 'listening'), once(unused, 'listening')]);
  const { port } = unused.address() as AddressInfo;
  unused.close();
  await once(unused, 'close');
  return { directory, socket, port };
}

const program = (port: number): string =>
  `const c = require('node:net').connect(${port}, '127.0.0.1', () => c.end('there and back')); c.pipe(process.stdout);`;

async function ended(args: readonly string[]): Promise<readonly [said: string, code: number | null]> {
  const child = spawn(process.execPath, args);
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  return [said, code as number | null];
}

test('leads connections to a port over the socket, and does not keep the program running', async () => {
  const { directory, socket, port } = await surroundings();
  const script = path.join(directory, 'bridge.cjs');
  await writeFile(script, bridgeScript(socket, port));
  expect(await ended(['--require', script, '-e', program(port)])).toEqual(['there and back', 0]);
});

test('runs a command line when there is something to connect to, and ends as that does', async () => {
  const { directory, socket, port } = await surroundings();
  const script = path.join(directory, 'bridge.cjs');
  await writeFile(script, bridgeAroundScript(socket, port));
  expect(await ended([script, process.execPath, '-e', program(port)])).toEqual(['there and back', 0]);
  expect(await ended([script, process.execPath, '-e', 'process.exit(7)'])).toEqual(['', 7]);
  expect(await ended([script, '/nowhere/program'])).toEqual(['', 127]);
  // Quicker to connect than Node is to listen.
  const quick = `exec 3<>/dev/tcp/127.0.0.1/${port} && echo connected`;
  expect(await ended([script, 'bash', '-c', quick])).toEqual(['connected\n', 0]);
});

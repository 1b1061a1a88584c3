import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { expect, onTestFinished, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { PythonIndexes } from './indexes.ts';

const FILES = [
  ['x-1.0.tar.gz', '>=3.8'],
  ['x-1.9-py3-none-any.whl', '>=3.8'],
  ['x-1.10-py3-none-any.whl', '>=3.8'],
  ['x-1.11-py3-none-any.whl', '>=3.8', 'taken back'],
  ['x-2.0rc1-py3-none-any.whl', '>=3.8'],
  ['x-2.0-py3-none-any.whl', '>=3.13'],
].map(([filename, python, yanked]) => ({ filename, url: `/${filename}`, 'requires-python': python, yanked }));

async function serveIndex(): Promise<string> {
  const server = createServer(({ url }, response) => {
    const files = url === '/x/' ? FILES : FILES.slice(-1);
    response.writeHead(200, { 'content-type': 'application/vnd.pypi.simple.v1+json' });
    response.end(JSON.stringify({ files: files.map((one) => ({ ...one, filename: one.filename?.replace('x', url === '/x/' ? 'x' : 'new') })) })); // prettier-ignore
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  onTestFinished(async () => {
    server.closeAllConnections();
    server.close();
    await once(server, 'close');
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
}

async function resolve(name: string, version?: string, python = '3.11.2'): Promise<string> {
  const environment = { env: {}, home: '/nowhere' } as unknown as RuntimeEnvironment;
  const index = await serveIndex();
  const indexes = await PythonIndexes.open(environment, { index }, undefined);
  onTestFinished(() => indexes[Symbol.dispose]());
  const source = { kind: 'package', ecosystem: 'pypi', name, ...(version && { version }) } as const;
  return (await indexes.resolve(source, { version: python }, new AbortController().signal)).version;
}

test('the newest release is meant that this Python can run and that nobody took back', async () => {
  expect(await resolve('x')).toBe('1.10');
  expect(await resolve('x', undefined, '3.13.1')).toBe('2.0');
});

test('an exact version is meant however it is written, taken back or not', async () => {
  expect(await resolve('x', '1.0.0')).toBe('1.0');
  expect(await resolve('x', '1.11')).toBe('1.11');
  expect(await resolve('x', '2.0rc1')).toBe('2.0rc1');
  await expect(resolve('x', '3.0')).rejects.toMatchObject({ code: 'runtime/package-not-found' });
});

test('one that needs a newer Python says so', async () => {
  await expect(resolve('new')).rejects.toMatchObject({
    code: 'runtime/prefetch-failed',
    message: 'package "new" needs Python >=3.13, and this machine has 3.11.2',
  });
});

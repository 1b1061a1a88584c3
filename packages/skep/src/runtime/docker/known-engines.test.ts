import { mkdtemp, rename, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import type { RuntimeInfo } from '../runtime.ts';
import type { Endpoint } from './endpoint.ts';
import { KnownEngines } from './known-engines.ts';

let directory: string;
let path: string;
let engines: KnownEngines;
let asked: number;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-engines-'));
  path = join(directory, 'docker.sock');
  await writeFile(path, '');
  engines = new KnownEngines();
  asked = 0;
});
afterEach(() => rm(directory, { recursive: true }));

async function idOf(endpoint: Endpoint = { kind: 'unix', path }): Promise<string> {
  const ask = async (): Promise<RuntimeInfo> => {
    asked += 1;
    return { kind: 'docker', id: `engine ${asked}`, version: '1', endpoint: 'x' };
  };
  return (await engines.identify(endpoint, ask)).id;
}

test('an engine is asked once', async () => {
  expect([await idOf(), await idOf()]).toEqual(['engine 1', 'engine 1']);
});

test('an engine that took its place is asked for itself', async () => {
  await idOf();
  await writeFile(join(directory, 'new'), '');
  await rename(join(directory, 'new'), path);
  expect(await idOf()).toBe('engine 2');
});

test('an engine elsewhere is another one, and one behind an address is asked each time', async () => {
  await idOf();
  const tcp = { kind: 'tcp', host: '127.0.0.1', port: 1 } as const;
  await writeFile(join(directory, 'other'), '');
  expect(await idOf({ kind: 'unix', path: join(directory, 'other') })).toBe('engine 2');
  expect([await idOf(tcp), await idOf(tcp)]).toEqual(['engine 3', 'engine 4']);
});

test('what failed is not remembered', async () => {
  const failing = (): Promise<RuntimeInfo> => Promise.reject(new Error('away'));
  await expect(engines.identify({ kind: 'unix', path }, failing)).rejects.toThrow('away');
  expect(await idOf()).toBe('engine 1');
});

import { readdir, readFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';
import { MemoryKeyring } from '../secrets/keyring/keyring.fixture.ts';
import { catalogueOf, imagePackage } from './catalogue.fixture.ts';

const TOKEN = { name: 'TOKEN', isRequired: true, isSecret: true };
const CATALOGUE = catalogueOf({
  'org.example/keyed': { packages: [imagePackage({ environmentVariables: [TOKEN] })] },
  'org.example/notes': {},
  'com.example/notes': {},
});

/** A machine on which everything that asks has something to ask about. */
async function machine(): Promise<CommandUnderTest> {
  const runtime = new MemoryRuntime({ 'fake:1': idle, 'fake@1.0.0': idle, 'fake@2.0.0': idle });
  runtime.versions.set('fake', '2.0.0');
  const skep = await commandUnderTest({
    runtime,
    catalogue: CATALOGUE,
    keyrings: [new MemoryKeyring()],
    env: { SKEP_FRONT_PORT: '0' },
    files: { '../.cursor/mcp.json': '{ "mcpServers": {} }\n' },
  });
  await skep.output('group create team');
  await skep.output('run npx://fake@1.0.0 --name alpha --group team');
  runtime.holding.add('alpha');
  return skep;
}

/** What a person relies on, by file: not the logs, and not what processes leave for each other while they run. */
async function kept(skep: CommandUnderTest): Promise<Readonly<Record<string, string>>> {
  const files = await readdir(skep.home, { recursive: true, withFileTypes: true });
  const paths = files.filter((one) => one.isFile()).map((one) => join(one.parentPath, one.name));
  const lasting = paths.filter((path) => !/\/(?:logs|locks|supervisor|cache)\/|\.lock$/.test(path));
  const read = lasting.map(async (path) => [relative(skep.home, path), await readFile(path, 'latin1')]);
  return Object.fromEntries(await Promise.all(read)) as Record<string, string>;
}

describe('Ctrl-C at a question leaves everything as it was:', () => {
  test.each([
    'run keyed',
    'run notes',
    'secret set github',
    'secret setup',
    'rm alpha',
    'rm --all',
    'group rm team',
    'group rm team --with-workloads',
    'connect cursor --group team',
    'upgrade alpha',
  ])('skep %s', async (line) => {
    const skep = await machine();
    const before = await kept(skep);
    const { status, err } = await skep.run(line, { leaves: true });
    expect(skep.asked.length).toBe(1);
    expect([status, err]).toEqual([1, expect.stringContaining('cancelled')]);
    expect(await kept(skep)).toEqual(before);
    expect(JSON.parse(await skep.output('status alpha --format json'))).toMatchObject({ status: 'running' });
  });
});

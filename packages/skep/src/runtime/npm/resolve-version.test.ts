import { mkdtemp, rm, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { findNpm } from './program.ts';
import { isMissingPackage, npmComplaint, npmFailure, resolveNpmVersion } from './resolve-version.ts';

let directory: string;
beforeAll(async () => {
  directory = await mkdtemp(path.join(tmpdir(), 'skep-npm-'));
});
afterAll(() => rm(directory, { recursive: true, force: true }));

function environment(changes: Partial<RuntimeEnvironment> = {}): RuntimeEnvironment {
  const base = { env: {}, home: directory, platform: process.platform, execPath: process.execPath };
  return { ...base, dataDir: directory, cacheDir: directory, owner: 'me', randomId: () => 'id', ...changes };
}

describe('resolveNpmVersion', () => {
  /** Stands in for npm: prints what it is told, whatever it is asked. */
  async function answering(stdout: string, status = 0): Promise<string> {
    const file = path.join(directory, 'npm-cli.js');
    await writeFile(file, `process.stdout.write(${JSON.stringify(stdout)}); process.exitCode = ${status};`);
    const npm = { file: process.execPath, args: [file] };
    const source = { kind: 'package', ecosystem: 'npm', name: 'x' } as const;
    const signal = new AbortController().signal;
    return resolveNpmVersion(npm, environment(), { source, cwd: directory, env: {}, signal });
  }

  it('takes the one version, or the last of a range', async () => {
    expect(await answering('"1.2.3"\n')).toBe('1.2.3');
    expect(await answering('[\n"1.2.3",\n"1.3.0"\n]\n')).toBe('1.3.0');
  });

  it('knows a missing package or version from any other failure', async () => {
    await expect(answering('{"error":{"code":"E404"}}', 1)).rejects.toMatchObject({
      code: 'runtime/package-not-found',
    });
    await expect(answering('')).rejects.toMatchObject({ code: 'runtime/package-not-found' });
    await expect(answering('{"error":{"code":"ECONNREFUSED"}}', 1)).rejects.toMatchObject({
      code: 'runtime/prefetch-failed',
    });
  });

  it('passes on what npm says in its JSON', async () => {
    const said = JSON.stringify({ error: { code: 'EINVALIDURL', summary: 'Invalid URL' } }, null, 2);
    await expect(answering(said, 1)).rejects.toMatchObject({
      message: 'package "x" could not be fetched: EINVALIDURL Invalid URL',
    });
  });
});

describe('findNpm', () => {
  it('runs the npm on the PATH with the running Node', async () => {
    const file = path.join(directory, 'npm-cli.js');
    await writeFile(file, '');
    const bin = await mkdtemp(path.join(directory, 'bin'));
    await symlink(file, path.join(bin, 'npm'));
    const execPath = path.join(bin, 'node');
    expect(await findNpm(environment({ env: { PATH: `relative:${bin}` }, execPath }))).toEqual({
      file: execPath,
      args: [file],
    });
  });

  it('says so when there is none', async () => {
    const empty = await mkdtemp(path.join(directory, 'empty'));
    const nowhere = environment({ env: { PATH: empty }, execPath: path.join(empty, 'bin/node') });
    await expect(findNpm(nowhere)).rejects.toMatchObject({ code: 'runtime/npm-missing' });
  });
});

it.each([
  ['npm error code E404\nnpm error 404 Not Found', true],
  ['npm error code ETARGET\nnpm error notarget No matching version', true],
  ['npm error code ECONNREFUSED', false],
  ['added 404 packages', false],
])('isMissingPackage(%j) is %s', (output, expected) => expect(isMissingPackage(output)).toBe(expected));

it('repeats what npm complains about, without its prefix and its log file', () => {
  const output =
    'npm error code EUSAGE\nnpm error\nnpm error Bad thing\nnpm error A complete log of this run: /x';
  expect(npmComplaint(output)).toBe('code EUSAGE; Bad thing');
  expect(npmFailure('x@1', output)).toMatchObject({
    code: 'runtime/prefetch-failed',
    message: expect.stringContaining('"x@1"'),
  });
});

import { spawnSync } from 'node:child_process';
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { buildRecipe, type Scheme } from './build-recipe.ts';
import { GO } from './go.ts';
import { UVX } from './uvx.ts';

// What finds the program of a package in its build, run beside directories that look as they do there.

let root: string;
beforeEach(() => {
  root = mkdtempSync(path.join(tmpdir(), 'skep-link-'));
});
afterEach(() => rmSync(root, { recursive: true, force: true }));

/** The script of the scheme, with these programs in the directory where its package manager puts them. */
function link(scheme: Scheme, name: string, [directory, ...programs]: readonly [string, ...string[]]) {
  const { files } = buildRecipe(scheme, { name, baseImage: 'x', addPackages: [], buildId: 'b' });
  const [file = '', text = ''] =
    Object.entries(files).find(([one]) => one.startsWith('skep/link-entry')) ?? [];
  mkdirSync(path.join(root, directory), { recursive: true });
  for (const one of programs) writeFileSync(path.join(root, directory, one), one);
  const script = path.join(root, path.basename(file));
  writeFileSync(script, text.replaceAll(/(?<![\w/])\/(?=opt\/|app\/|etc\/)/g, `${root}/`));
  const [program = '', , ...args] = scheme.link({ name, baseImage: 'x', addPackages: [], buildId: 'b' });
  const { status, stderr } = spawnSync(program, [script, ...args], { encoding: 'utf8' });
  return { status, told: stderr };
}

const hasPython = spawnSync('python3', ['--version']).status === 0;

describe.skipIf(!hasPython)('the program of a Python package (needs python3)', () => {
  test.each([
    ['server', ['server'], 'server'],
    ['server', ['run-it'], 'run-it'],
    ['mcp_server.git', ['mcp-server-git'], 'mcp-server-git'],
    ['MCP-Server', ['helper', 'mcp_server'], 'mcp_server'],
  ])('%s with %j is %s', (name, scripts, chosen) => {
    expect(link(UVX, name, ['opt/uv-tools/bin', ...scripts])).toEqual({ status: 0, told: '' });
    expect(path.basename(readlinkSync(path.join(root, 'app/server/run')))).toBe(chosen);
  });

  test.each([
    [
      'server',
      ['one', 'two'],
      'skep: cannot tell what to run in package "server": its programs are one, two\n',
    ],
    ['server', [], 'skep: cannot tell what to run in package "server": it has no program\n'],
  ])('%s with %j is not guessed', (name, scripts, told) => {
    expect(link(UVX, name, ['opt/uv-tools/bin', ...scripts])).toEqual({ status: 1, told });
    expect(readdirSync(root)).not.toContain('app');
  });
});

describe('the program of a Go package', () => {
  test('is the one that was built, and all that its image holds', () => {
    const place = path.join(root, 'app/root');
    expect(link(GO, 'example.org/x', ['app/bin', 'x'])).toEqual({ status: 0, told: '' });
    expect(readFileSync(path.join(place, 'app/server/run'), 'utf8')).toBe('x');
    expect(readdirSync(place).toSorted()).toEqual(['app', 'etc', 'tmp']);
  });

  test.each([[[]], [['one', 'two']]])('is none where there are %j', (built) => {
    expect(link(GO, 'example.org/x', ['app/bin', ...built])).toEqual({
      status: 1,
      told: 'skep: package "example.org/x" is no program (package main)\n',
    });
  });
});

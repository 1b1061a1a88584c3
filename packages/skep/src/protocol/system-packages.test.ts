import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { buildRecipe } from './build-recipe.ts';
import { NPX } from './npx.ts';

// Images of Alpine and others cannot be had everywhere, so what asks their package managers is run beside programs that tell how
// they were called. Those are all that it finds: nothing of this machine is changed.

let dir: string;
beforeEach(() => {
  dir = mkdtempSync(path.join(tmpdir(), 'skep-packages-'));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** The script of a build on a base image that has these programs. */
function install(mode: 'optional' | 'required', programs: readonly string[], status = 0) {
  const recipe = buildRecipe(NPX, { name: 'x', baseImage: 'x', addPackages: [], buildId: 'b' });
  const [script, bin, log] = ['packages.sh', 'bin', 'log'].map((name) => path.join(dir, name)) as [string, string, string]; // prettier-ignore
  writeFileSync(script, recipe.files['skep/packages.sh'] ?? '');
  writeFileSync(log, '');
  mkdirSync(bin);
  for (const name of [...programs, 'rm'])
    writeFileSync(path.join(bin, name), `#!/bin/sh\necho "${name} $*" >>${log}\nexit ${status}\n`, { mode: 0o755 }); // prettier-ignore
  const done = spawnSync('/bin/sh', [script, mode, 'git', 'lib++1.0'], { env: { PATH: bin }, encoding: 'utf8' }); // prettier-ignore
  return { status: done.status, told: done.stderr, called: readFileSync(log, 'utf8').split('\n') };
}

test.each([
  ['Alpine', ['apk'], ['apk add --no-cache git lib++1.0']],
  ['Debian', ['apt-get'], ['apt-get update', 'apt-get install -y --no-install-recommends git lib++1.0']],
  ['a small Fedora', ['microdnf'], ['microdnf install -y git lib++1.0', 'microdnf clean all']],
  ['Fedora', ['dnf'], ['dnf install -y git lib++1.0', 'dnf clean all']],
])('system packages are added to an image of %s', (_, programs, called) => {
  const done = install('required', programs);
  expect(done).toMatchObject({ status: 0, told: '' });
  expect(done.called.slice(0, called.length)).toEqual(called);
});

test.each([
  ['optional', [], 0],
  ['required', [], 1],
  ['optional', ['apt-get'], 0],
  ['required', ['apt-get'], 1],
] as const)('%s ones of an image with %j that fails end with %d', (mode, programs, status) => {
  const done = install(mode, programs, 1);
  expect(done.status).toBe(status);
  const manager = 'skep: the base image has no package manager (apk, apt-get, dnf)\n';
  const note = 'skep: going on without the optional packages: git lib++1.0\n';
  expect(done.told).toBe((programs.length === 0 ? manager : '') + (mode === 'optional' ? note : ''));
});

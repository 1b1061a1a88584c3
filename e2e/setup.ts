import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { acquireLock, withLock, type Lock } from '@skep/core/files/lock.ts';
import { hasCode } from '@skep/core/errors/skep-error.ts';
import { engine } from './images.ts';
import { component, repoRoot } from './require.ts';

/**
 * Packs both programs as they would be published and unpacks them outside the workspace, so that the tests run what a
 * user installs. `SKEP_TEST_BUNDLE` names the folder: `<folder>/skep/skep.js`, `<folder>/skep-registry/skep-registry.js`.
 */
const folder = mkdtempSync(path.join(os.tmpdir(), 'skep-e2e-'));

/** Held by every test run of this machine: the images of fixtures go when the last run ends. */
const runs = path.join(os.tmpdir(), 'skep-e2e-runs.lock');
const held = { waitMs: 60_000, what: 'the fixture images' };
let running: Lock;

export async function setup(): Promise<void> {
  running = await acquireLock(runs, { ...held, shared: true });
  for (const program of ['skep', 'skep-registry']) {
    const dist = path.join(repoRoot, 'dist', program);
    if (!existsSync(dist)) throw new Error(`dist/${program} is missing: run "npm run build" first`);
    const target = path.join(folder, 'packed', program);
    execFileSync('mkdir', ['-p', target]);
    execFileSync('npm', ['pack', '--silent', '--pack-destination', target], { cwd: dist });
    const tarball = readdirSync(target).find((file) => file.endsWith('.tgz'));
    execFileSync('tar', ['-xzf', path.join(target, tarball ?? ''), '-C', target]);
    execFileSync('mv', [path.join(target, 'package'), path.join(folder, program)]);
  }
  rmSync(path.join(folder, 'packed'), { recursive: true });
  process.env['SKEP_TEST_BUNDLE'] = folder;
}

export async function teardown(): Promise<void> {
  rmSync(folder, { recursive: true, force: true });
  running.release();
  try {
    await withLock(runs, { ...held, waitMs: 0 }, removeFixtureImages);
  } catch (error) {
    // Another run uses them, and removes them at its end.
    if (!hasCode(error, 'file/locked')) throw error;
  }
}

/** Images that tests made, by the label that only they carry. */
async function removeFixtureImages(): Promise<void> {
  if (!(await component('engine')).available) return;
  const filters = encodeURIComponent(JSON.stringify({ label: ['skep.fixture'] }));
  const { text } = await engine('GET', `/images/json?filters=${filters}`);
  const images = JSON.parse(text) as readonly { readonly Id: string }[];
  for (const { Id } of images) await engine('DELETE', `/images/${Id}?force=1`);
}

import { createHash } from 'node:crypto';
import { chown, mkdir, readdir, realpath, stat, symlink, utimes } from 'node:fs/promises';
import path from 'node:path';
import { ifThere } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { goFailure } from '../go/failure.ts';
import { GO_ROOT, toolchainMounts, type GoToolchain } from '../go/toolchain.ts';
import { checkFiles } from './check-tree.ts';
import { runToItsEnd } from './run-to-end.ts';
import { confinedUser } from '../../permissions/confined-user.ts';
import type { Fetch } from './found-package.ts';
import { moveIntoPlace, removeFiles, removeWhole, scratchDirectory } from './own-directories.ts';
import { goLibrariesDirectory } from './places.ts';

/** What every build is called with: Go takes what was compiled before only where nothing of it differs. */
export const GO_BUILD = ['-trimpath', '-v', '-ldflags=-s -w'];

/** Nothing of a user is read, nothing is taken from a repository, and no other Go is fetched. */
export const GO_SETTINGS: Readonly<Record<string, string>> = {
  GOROOT: GO_ROOT,
  GOPROXY: 'off',
  GONOPROXY: 'none',
  GOPRIVATE: '',
  GOVCS: '*:off',
  GOENV: 'off',
  GOFLAGS: '-modcacherw',
  GOTOOLCHAIN: 'local',
  GOTELEMETRY: 'off',
  GO111MODULE: 'on',
  GOWORK: 'off',
  CGO_ENABLED: '0',
  GOCACHE: '/stage/build',
  GOTMPDIR: '/stage/tmp',
  TMPDIR: '/stage/tmp',
};

/** Where a build finds the compiled library inside. */
export const GO_LIBRARY = '/skep/go-library';

const DAY_MS = 86_400_000;

interface Compiling extends Fetch {
  readonly environment: RuntimeEnvironment;
  readonly go: GoToolchain;
}

/**
 * The directory of this toolchain's compiled standard library: a build cache of Go's. Compiled once, by a Go that sees
 * nothing but itself, so builds may share it; each of them can only read it. Throws `runtime/prefetch-failed` or
 * `runtime/aborted`.
 */
export async function compiledLibrary(compiling: Compiling): Promise<string> {
  const { environment, go, report } = compiling;
  const libraries = goLibrariesDirectory(environment);
  const name = await libraryName(go);
  const library = path.join(libraries, name);
  const now = new Date();
  if ((await ifThere(utimes(library, now, now).then(() => true))) === true) return library;
  report.step(`Compiling the standard library of ${go.version}, once`);
  const stage = await scratchDirectory(libraries, environment);
  try {
    await compile(compiling, stage);
    await moveIntoPlace(path.join(stage, 'tree'), library, environment);
  } finally {
    await removeFiles(stage);
  }
  await removeUnused(environment, name, now.getTime() - DAY_MS);
  return library;
}

/** Another one for each toolchain. That it fits is Go's to know: it compiles anew what differs. */
async function libraryName({ root, version }: GoToolchain): Promise<string> {
  const program = await realpath(path.join(root, 'bin/go'));
  const { dev, ino, size, mtimeMs } = await stat(program);
  const hash = createHash('sha256').update(JSON.stringify([version, program, dev, ino, size, mtimeMs]));
  return `${version.replaceAll(/[^A-Za-z0-9.+-]/g, '_')}-${hash.digest('hex').slice(0, 12)}`;
}

async function compile({ bubblewrap, go, report, signal }: Compiling, stage: string): Promise<void> {
  const at = (name: string) => path.join(stage, name);
  const asRoot = bubblewrap.setpriv !== undefined;
  const user = await confinedUser({ asRoot, name: 'go', mounts: [] });
  for (const name of ['tree', 'tmp']) {
    await mkdir(at(name));
    if (asRoot) await chown(at(name), user.uid, user.gid);
  }
  const confined = {
    command: [`${GO_ROOT}/bin/go`, 'build', ...GO_BUILD, 'std'],
    env: GO_SETTINGS,
    mounts: [
      ...toolchainMounts(go),
      { source: at('tree'), target: '/stage/build', readOnly: false },
      { source: at('tmp'), target: '/stage/tmp', readOnly: false },
    ],
    cwd: '/stage/tmp',
    network: 'none',
    user,
    endsWithParent: true,
  } as const;
  const onLine = countPackages((count) => report.detail(`${count} packages compiled`));
  const { status, said } = await runToItsEnd(bubblewrap, confined, signal, { stage, onLine });
  const what = `the standard library of ${go.version}`;
  if (status !== 0) throw goFailure(what, said, '');
  await checkFiles({ tree: at('tree'), specifier: what });
}

/** Go says the name of each package that it compiles. */
export function countPackages(told: (count: number) => void): (line: string) => void {
  let count = 0;
  return (line) => {
    if (/^[\w./~-]+$/.test(line)) told((count += 1));
  };
}

/** What no build has used since then is of a Go that is gone. */
async function removeUnused(environment: RuntimeEnvironment, name: string, since: number): Promise<void> {
  const libraries = goLibrariesDirectory(environment);
  for (const other of await readdir(libraries)) {
    if (other === name || other.startsWith('.')) continue;
    const found = await ifThere(stat(path.join(libraries, other)));
    if (found !== undefined && found.mtimeMs < since) await removeWhole(libraries, other, environment);
  }
}

/**
 * Fills `cache`, the build cache of one build, with a link for each file of the library at GO_LIBRARY: what that build
 * puts in place of one it puts there for itself. Returns the directories that were made, relative to `cache`.
 */
export async function linkLibrary(library: string, cache: string): Promise<readonly string[]> {
  const parts = (await readdir(library)).filter((one) => /^[0-9a-f]{2}$/.test(one));
  await Promise.all(
    parts.map(async (part) => {
      await mkdir(path.join(cache, part), { recursive: true });
      for (const file of await readdir(path.join(library, part))) {
        await symlink(path.posix.join(GO_LIBRARY, part, file), path.join(cache, part, file));
      }
    }),
  );
  return parts;
}

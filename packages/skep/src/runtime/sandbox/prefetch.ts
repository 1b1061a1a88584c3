import { createHash } from 'node:crypto';
import { mkdir, rename, rm, stat, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { errnoOf } from '@skep/core/files/errno.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { findNpm, runNpm, type NpmProgram } from '../npm/program.ts';
import { npmFailure, npmSpecifier, resolveNpmVersion } from '../npm/resolve-version.ts';
import type { PackageSource, Report } from '../runtime.ts';
import { STAGE_VARIABLE } from './linux-process.ts';
import { packageCommand, treeManifest } from './package-program.ts';
import { packagesDirectory, scratchName } from './places.ts';

export interface PrefetchRequest {
  readonly source: PackageSource;
  /** What npm is told to install when it is not `name@version`, for example a local directory. */
  readonly specifier?: string;
  readonly caCert?: string;
  readonly report: Report;
  readonly signal: AbortSignal;
}

/**
 * Fetches an npm package with everything it needs into the package cache and returns the id of the tree. Scripts of the
 * packages do not run here, outside the sandbox. The tree appears under its name only when it is complete; a failure or
 * an abort leaves nothing. Throws `runtime/package-not-found`, `runtime/prefetch-failed` or `runtime/aborted`.
 */
export async function prefetchNpm(
  environment: RuntimeEnvironment,
  request: PrefetchRequest,
): Promise<string> {
  const packages = packagesDirectory(environment);
  const stage = path.join(packages, scratchName(environment));
  await mkdir(stage, { recursive: true, mode: 0o750 });
  // Read by a user of its own where Skep runs as root.
  await mkdir(path.join(stage, 'tree'), { mode: 0o755 });
  try {
    const npm = await findNpm(environment);
    const env = { ...(await certificate(stage, request.caCert)), [STAGE_VARIABLE]: stage };
    const { source } = request;
    const version = await exactVersion(npm, environment, { stage, env, request });
    const reference = treeId(source.name, version, request.specifier);
    const target = path.join(packages, reference);
    if (await exists(target)) return reference;
    request.report.step(`Fetching ${source.name}@${version}`);
    await install(npm, environment, { stage, env, request, version });
    await packageCommand(path.join(stage, 'tree'));
    await moveIntoPlace(path.join(stage, 'tree'), target);
    return reference;
  } finally {
    await rm(stage, { recursive: true, force: true });
  }
}

interface Step {
  readonly stage: string;
  readonly env: Readonly<Record<string, string>>;
  readonly request: PrefetchRequest;
}

async function exactVersion(npm: NpmProgram, environment: RuntimeEnvironment, step: Step): Promise<string> {
  const { source, specifier, signal, report } = step.request;
  if (specifier !== undefined) return source.version ?? 'local';
  report.step(`Looking up ${npmSpecifier(source)}`);
  return resolveNpmVersion(npm, environment, { source, cwd: step.stage, env: step.env, signal });
}

async function install(
  npm: NpmProgram,
  environment: RuntimeEnvironment,
  step: Step & { readonly version: string },
): Promise<void> {
  const { stage, env, request, version } = step;
  const tree = path.join(stage, 'tree');
  await writeFile(path.join(tree, 'package.json'), treeManifest(request.source.name));
  const specifier = request.specifier ?? `${request.source.name}@${version}`;
  let downloads = 0;
  const result = await runNpm(npm, environment, {
    args: [
      'install',
      '--prefix',
      tree,
      '--ignore-scripts',
      '--omit=dev',
      '--install-links',
      '--no-save',
      '--',
      specifier,
    ],
    cwd: tree,
    env: { ...env, npm_config_loglevel: 'http' },
    onLine(line) {
      if (!line.startsWith('npm http fetch')) return;
      downloads += 1;
      request.report.detail(`${downloads} downloads`);
    },
    signal: request.signal,
  });
  if (result.status === 0) return;
  const complaint = result.stderr.split('\n').filter((line) => !line.startsWith('npm http'));
  throw npmFailure(specifier, complaint.join('\n'));
}

async function certificate(stage: string, caCert: string | undefined): Promise<Record<string, string>> {
  if (caCert === undefined) return {};
  const file = path.join(stage, 'ca.crt');
  await writeFile(file, caCert);
  return { npm_config_cafile: file };
}

/** Readable and unique: the same package, version and place to get it from have the same tree. */
function treeId(name: string, version: string, specifier: string | undefined): string {
  const plain = name
    .replaceAll(/[^a-z0-9]+/g, '-')
    .replaceAll(/^-|-$/g, '')
    .slice(0, 80);
  const hash = createHash('sha256')
    .update(`${name}\0${version}\0${specifier ?? ''}`)
    .digest('hex')
    .slice(0, 12);
  return `npm-${plain}@${version.replaceAll(/[^A-Za-z0-9.+-]/g, '_')}-${hash}`;
}

/** When another process was faster its tree is the same one. */
async function moveIntoPlace(tree: string, target: string): Promise<void> {
  try {
    await rename(tree, target);
  } catch (cause) {
    const code = errnoOf(cause);
    if (code === 'ENOTEMPTY' || code === 'EEXIST') return;
    throw new SkepError('runtime/prefetch-failed', {
      message: `cannot write "${target}": ${code ?? 'unexpected failure'}`,
      cause,
    });
  }
}

async function exists(directory: string): Promise<boolean> {
  return stat(directory).then(
    () => true,
    () => false,
  );
}

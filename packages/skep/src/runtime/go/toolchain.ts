import { execFile } from 'node:child_process';
import { accessSync, constants, existsSync, readdirSync, realpathSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { z } from 'zod';
import type { Mount } from '../../permissions/mounts.ts';
import type { RuntimeEnvironment } from '../environment.ts';

const run = promisify(execFile);

/** A Go of this machine, with what the person has set for it. */
export interface GoToolchain {
  readonly root: string;
  /** `go1.26.8`. */
  readonly version: string;
  readonly settings: GoSettings;
}

const settingsShape = z.object({
  /** Where modules come from ("Module proxy" of the Go modules reference). */
  GOPROXY: z.string(),
  /** The checksum database, and which modules it is not asked about. */
  GOSUMDB: z.string(),
  GONOSUMDB: z.string().default(''),
  /** Modules that no proxy is asked for. */
  GONOPROXY: z.string().default(''),
});
const shape = settingsShape.extend({ GOROOT: z.string().min(1), GOVERSION: z.string() });

export type GoSettings = z.infer<typeof settingsShape>;

/** Where the toolchain appears inside a sandbox. */
export const GO_ROOT = '/skep/go';

/**
 * The Go of the PATH, with the settings that it has everywhere for this person (`go env`). It is asked where there is no
 * module, and gets no other release of itself. Throws `runtime/go-missing`.
 */
export async function findGo({ env }: Pick<RuntimeEnvironment, 'env'>): Promise<GoToolchain> {
  const directories = (env['PATH'] ?? '').split(path.delimiter).filter((one) => path.isAbsolute(one));
  const program = directories.map((one) => path.join(one, 'go')).find(isExecutable);
  if (program === undefined) throw new SkepError('runtime/go-missing', { message: 'Go was not found' });
  const names = Object.keys(shape.shape);
  const options = { cwd: '/', env: { ...env, GOTOOLCHAIN: 'local', GOWORK: 'off' } };
  const answer = await run(program, ['env', '-json', ...names], options).catch(() => undefined);
  const told = shape.safeParse(parsedJson(answer?.stdout ?? '')).data;
  if (told === undefined) {
    throw new SkepError('runtime/go-missing', { message: `Go at "${program}" does not tell its settings` });
  }
  const { GOROOT: root, GOVERSION: version, ...settings } = told;
  return { root, version, settings };
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/**
 * The parts of a toolchain that a build needs, with distributions that spread them over several directories by links. No
 * module of the person is among them.
 */
export function toolchainMounts({ root }: Pick<GoToolchain, 'root'>): readonly Mount[] {
  const below = (name: string): readonly string[] =>
    existsSync(path.join(root, name))
      ? readdirSync(path.join(root, name)).map((one) => `${name}/${one}`)
      : [];
  const parts = ['VERSION', 'go.env', 'src', 'lib', ...below('bin'), ...below('pkg')];
  return parts
    .filter((one) => existsSync(path.join(root, one)))
    .map((one) => ({
      source: realpathSync(path.join(root, one)),
      target: path.posix.join(GO_ROOT, one),
      readOnly: true,
    }));
}

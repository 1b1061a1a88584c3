import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { access, realpath } from 'node:fs/promises';
import path from 'node:path';
import { promisify } from 'node:util';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RuntimeEnvironment } from '../environment.ts';

const run = promisify(execFile);

type Search = Pick<RuntimeEnvironment, 'env' | 'execPath'>;

/**
 * Finds npm on the PATH, else beside the running Node: the real path of its `npm-cli.js`, which is run with the running
 * Node, so that the packages chosen fit the Node that will run them. Throws `runtime/npm-missing`.
 */
export async function findNpm({ env, execPath }: Search): Promise<string> {
  const beside = path.dirname(execPath);
  const directories = (env['PATH'] ?? '').split(path.delimiter).filter((one) => path.isAbsolute(one));
  const candidates = [
    ...[...directories, beside].map((directory) => path.join(directory, 'npm')),
    path.join(beside, '../lib/node_modules/npm/bin/npm-cli.js'),
  ];
  for (const candidate of candidates) {
    const file = await realFile(candidate);
    // Anything else is a wrapper of some version manager, and only knows where npm is.
    if (file?.endsWith('/bin/npm-cli.js')) return file;
  }
  throw new SkepError('runtime/npm-missing', {
    message: 'npm was found neither on the PATH nor beside Node',
  });
}

/** The directory that npm consists of. */
export const npmRoot = (cli: string): string => path.dirname(path.dirname(cli));

/** The registry that npm uses where nothing is set. It reads no package and no file of the user to tell. */
export async function defaultRegistry(search: Search): Promise<string> {
  const cli = await findNpm(search);
  try {
    // npm refuses one file for both, and needs a home directory even where nothing names one for this user.
    const env = {
      HOME: '/dev/null',
      npm_config_userconfig: '/dev/null',
      npm_config_globalconfig: '/dev/null/none',
      npm_config_logs_max: '0',
    };
    const { stdout } = await run(search.execPath, [cli, 'config', 'get', 'registry'], { cwd: '/', env });
    return stdout.trim();
  } catch (cause) {
    throw new SkepError('runtime/npm-missing', { message: `npm at "${cli}" cannot be started`, cause });
  }
}

async function realFile(candidate: string): Promise<string | undefined> {
  try {
    await access(candidate, constants.R_OK);
    return await realpath(candidate);
  } catch {
    return undefined; // the next candidate may exist
  }
}

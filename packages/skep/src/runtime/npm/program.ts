import { spawn } from 'node:child_process';
import { access, constants, realpath } from 'node:fs/promises';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RuntimeEnvironment } from '../environment.ts';

/** How to start npm: `file` with `args` before npm's own. */
export interface NpmProgram {
  readonly file: string;
  readonly args: readonly string[];
}

/**
 * Finds npm on the PATH, else beside the running Node. npm's own script is run with the running Node, so that the
 * packages chosen fit the Node that will run them. Throws `runtime/npm-missing`.
 */
export async function findNpm(environment: RuntimeEnvironment): Promise<NpmProgram> {
  const beside = path.dirname(environment.execPath);
  const directories = (environment.env['PATH'] ?? '')
    .split(path.delimiter)
    .filter((one) => path.isAbsolute(one));
  const candidates = [
    ...[...directories, beside].map((directory) => path.join(directory, 'npm')),
    path.join(beside, '../lib/node_modules/npm/bin/npm-cli.js'),
  ];
  for (const candidate of candidates) {
    const file = await realFile(candidate);
    if (file?.endsWith('npm-cli.js')) return { file: environment.execPath, args: [file] };
    if (file !== undefined) return { file, args: [] };
  }
  throw new SkepError('runtime/npm-missing', {
    message: 'npm was found neither on the PATH nor beside Node',
  });
}

async function realFile(candidate: string): Promise<string | undefined> {
  try {
    await access(candidate, constants.R_OK);
    return await realpath(candidate);
  } catch {
    return undefined; // the next candidate may exist
  }
}

export interface NpmCall {
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to the caller's environment. */
  readonly env: Readonly<Record<string, string>>;
  /** Called with each line npm writes to stderr. */
  readonly onLine: (line: string) => void;
  readonly signal: AbortSignal;
}

export interface NpmResult {
  readonly status: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs npm to its end. Throws `runtime/aborted` when the signal ends it first; any exit status is a result. */
export async function runNpm(
  program: NpmProgram,
  environment: RuntimeEnvironment,
  call: NpmCall,
): Promise<NpmResult> {
  if (call.signal.aborted) throw new SkepError('runtime/aborted', { cause: call.signal.reason });
  const child = spawn(program.file, [...program.args, ...call.args], {
    cwd: call.cwd,
    env: { ...environment.env, ...QUIET, ...call.env },
    stdio: ['ignore', 'pipe', 'pipe'],
    signal: call.signal,
  });
  let stdout = '';
  const errors: string[] = [];
  child.stdout.setEncoding('utf8').on('data', (text: string) => void (stdout += text));
  createInterface({ input: child.stderr }).on('line', (line) => {
    errors.push(line);
    call.onLine(line);
  });
  const ended = await new Promise<number | Error>((resolve) => {
    // An abort is an `error` too, but npm still writes until it has closed.
    child.once('error', (error) => child.pid === undefined && resolve(error));
    child.once('close', (code) => resolve(code ?? 1));
  });
  if (call.signal.aborted) throw new SkepError('runtime/aborted', { cause: call.signal.reason });
  if (typeof ended !== 'number') {
    throw new SkepError('runtime/npm-missing', {
      message: `npm at "${program.file}" cannot be started`,
      cause: ended,
    });
  }
  return { status: ended, stdout, stderr: errors.join('\n') };
}

/** A package that does not exist must be known in seconds; nothing but the result and errors is printed. */
const QUIET = {
  npm_config_fetch_retries: '1',
  npm_config_fetch_retry_mintimeout: '1000',
  npm_config_update_notifier: 'false',
  npm_config_audit: 'false',
  npm_config_fund: 'false',
  npm_config_loglevel: 'error',
};

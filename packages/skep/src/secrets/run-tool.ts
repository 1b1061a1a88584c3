import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { printable } from '@skep/core/terminal/printable.ts';

export interface ToolOptions {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly input?: string;
  readonly waitMs?: number;
}

export interface ToolAnswer {
  readonly status: number;
  readonly out: string;
  /** One line. */
  readonly err: string;
}

const WAIT_MS = 30_000;
const MAX_BYTES = 4 * 1024 * 1024;

/**
 * Runs a program of the system to its end. What is secret goes by its standard input, never among its arguments, which
 * any user can read. Undefined where there is no such program; fails with `secrets/tool` when it takes too long or says
 * too much.
 */
export async function runTool(
  program: string,
  args: readonly string[],
  { env, input = '', waitMs = WAIT_MS }: ToolOptions,
): Promise<ToolAnswer | undefined> {
  const child = spawn(program, args, { env, stdio: 'pipe' });
  const ended = once(child, 'close') as Promise<[number | null]>;
  // It may end without reading what it is told.
  child.stdin.on('error', () => {});
  child.stdin.end(input);
  const end = (): void => void child.kill('SIGKILL');
  const limit = setTimeout(end, waitMs);
  const said = Promise.all([collect(child.stdout, end), collect(child.stderr, end)]);
  try {
    const [[status], [out, err]] = await Promise.all([ended, said]);
    if (status !== null) return { status, out, err: printable(err).trim().slice(0, 400) };
  } catch (error) {
    await said.catch(() => {});
    if (error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'EACCES')) {
      return undefined;
    }
    throw error;
  } finally {
    clearTimeout(limit);
  }
  throw new SkepError('secrets/tool', { message: `"${program}" did not answer in time` });
}

async function collect(stream: AsyncIterable<unknown>, tooMuch: () => void): Promise<string> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of stream) {
    chunks.push(chunk as Buffer);
    length += (chunk as Buffer).length;
    if (length > MAX_BYTES) {
      tooMuch();
      break;
    }
  }
  return Buffer.concat(chunks).toString('utf8');
}

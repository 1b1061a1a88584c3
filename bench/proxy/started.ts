import { spawn } from 'node:child_process';
import { once } from 'node:events';
import path from 'node:path';
import { createInterface } from 'node:readline';

/** A program of this folder that prints its URL; `await using` ends it. */
interface Started extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
}

/** Starts `program` of this folder with `args`; resolves when it has printed its URL. */
export async function started(program: string, args: readonly string[]): Promise<Started> {
  const child = spawn(process.execPath, [path.join(import.meta.dirname, program), ...args], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [url] = await once(createInterface({ input: child.stdout }), 'line');
  return {
    url: String(url),
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

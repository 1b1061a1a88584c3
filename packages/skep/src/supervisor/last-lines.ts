import type { Runtime } from '../runtime/runtime.ts';

const MAX_BYTES = 64 * 1024;

/** The last lines a workload wrote, stderr and stdout together; what cannot be read is left out. */
export async function lastLines(runtime: Runtime, name: string, count: number): Promise<readonly string[]> {
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of runtime.logs(name, {
    follow: false,
    tail: count,
    signal: AbortSignal.timeout(5_000),
  })) {
    chunks.push(chunk.bytes);
    bytes += chunk.bytes.length;
    if (bytes > MAX_BYTES) break;
  }
  const text = Buffer.concat(chunks).toString('utf8');
  return text
    .split('\n')
    .map((line) => line.trimEnd())
    .filter((line) => line !== '')
    .slice(-count);
}

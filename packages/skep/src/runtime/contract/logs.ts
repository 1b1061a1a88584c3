import { describe, expect, test } from 'vitest';
import type { LogChunk } from '../runtime.ts';
import { forever, type ContractBench } from './bench.ts';

/** What a workload wrote. */
export function logsContract(bench: ContractBench): void {
  describe('logs', () => {
    test('gives the whole log, its tail, and what is written while following', async () => {
      const { name, probe } = await bench.running();
      await probe.call('probe/stderr', { text: 'one\ntwo\nthree\n' });
      // The answer and the log may go different ways.
      await expect
        .poll(() => stderrOf(bench.runtime.logs(name, { follow: false, signal: forever() })))
        .toBe('probe ready\none\ntwo\nthree\n');
      const following = new AbortController();
      let seen = '';
      for await (const chunk of bench.runtime.logs(name, { follow: true, signal: following.signal })) {
        if (chunk.stream !== 'stderr') continue;
        seen += Buffer.from(chunk.bytes).toString();
        if (seen.endsWith('three\n')) await probe.call('probe/stderr', { text: 'four\n' });
        if (seen.endsWith('four\n')) following.abort();
      }
      expect(seen).toBe('probe ready\none\ntwo\nthree\nfour\n');
    });

    test('gives only the last lines when asked', async () => {
      const { name, probe } = await bench.running();
      await probe.call('probe/stderr', { text: 'one\ntwo\nthree\n' });
      if (bench.lacks('logs-of-stopped')) await probe.call('ping');
      else await bench.runtime.stop(name, 3000);
      // An engine counts the lines of stdout too, here the answer to the call.
      const text = await stderrOf(bench.runtime.logs(name, { follow: false, tail: 2, signal: forever() }));
      expect(text).toMatch(/^(?:two\n)?three\n$/);
    });

    test('gives the time of each line, and only what was written since one, where it keeps them', async ({
      skip,
    }) => {
      if (!bench.runtime.timesLogs) skip('its log holds no times');
      const { name, probe } = await bench.running();
      await probe.call('probe/stderr', { text: 'one\ntwo\n' });
      const read = (since?: number): Promise<string> =>
        stderrOf(bench.runtime.logs(name, { follow: false, timestamps: true, since, signal: forever() }));
      await expect.poll(() => read()).toMatch(/two\n$/);
      const lines = (await read()).trimEnd().split('\n');
      expect(lines.map((line) => line.replace(/^\S+ /, ''))).toEqual(['probe ready', 'one', 'two']);
      const times = lines.map((line) => Date.parse(line.split(' ', 1)[0] ?? ''));
      expect(times).not.toContain(Number.NaN);
      expect(await read(Math.min(...times))).toBe(`${lines.join('\n')}\n`);
      // Podman tells whole seconds.
      expect(await read(Math.max(...times) + 1000)).toBe('');
    });

    test('ends a followed log with the workload', async () => {
      const { name, probe } = await bench.running();
      const text = stderrOf(bench.runtime.logs(name, { follow: true, signal: forever() }));
      probe.call('probe/exit', { code: 0 }).catch(() => {});
      expect(await text).toBe('probe ready\n');
    });
  });
}

async function stderrOf(chunks: AsyncIterable<LogChunk>): Promise<string> {
  let text = '';
  for await (const chunk of chunks)
    if (chunk.stream === 'stderr') text += Buffer.from(chunk.bytes).toString();
  return text;
}

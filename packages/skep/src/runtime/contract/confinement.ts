import { readFile, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { expect, test } from 'vitest';
import type { ContractBench } from './bench.ts';

/** What a workload can see of the machine, and what it cannot. */
export function confinementContract(bench: ContractBench): void {
  test('mounts read-only and writable directories, and nothing else', async () => {
    const [readOnly, writable, unseen] = await Promise.all(
      ['ro', 'rw', 'unseen'].map((name) => bench.folder(name)),
    );
    if (!readOnly || !writable || !unseen) throw new TypeError('no directories');
    for (const one of [readOnly, writable, unseen])
      await writeFile(path.join(one, 'file'), path.basename(one));
    const mounts = [
      { source: readOnly, target: '/data/ro', readOnly: true },
      { source: writable, target: '/data/rw', readOnly: false },
    ];
    const { probe } = await bench.running({ mounts });
    expect(await probe.call('probe/read', { path: '/data/ro/file' })).toBe(path.basename(readOnly));
    await expect(probe.call('probe/write', { path: '/data/ro/file', text: 'x' })).rejects.toMatchObject({
      code: 'EROFS',
    });
    await expect(probe.call('probe/read', { path: path.join(unseen, 'file') })).rejects.toMatchObject({
      code: 'ENOENT',
    });
    await expect(
      probe.call('probe/write', { path: path.join(unseen, 'new'), text: 'x' }),
    ).rejects.toMatchObject({ code: 'ENOENT' });
    expect(await probe.call('probe/read', { path: '/data/rw/file' })).toBe(path.basename(writable));
  });

  test('lets a writable mount be written', async () => {
    const writable = await bench.folder('rw');
    const mounts = [{ source: writable, target: '/data/out', readOnly: false }];
    const { probe } = await bench.running({ mounts });
    expect(await probe.call('probe/write', { path: '/data/out/made', text: 'inside' })).toBe('written');
    expect(await readFile(path.join(writable, 'made'), 'utf8')).toBe('inside');
  });

  test('cannot write what the kernel is steered with', async () => {
    const { probe } = await bench.running();
    for (const name of ['kernel/core_pattern', 'kernel/hostname', 'vm/swappiness']) {
      const path = `/proc/sys/${name}`;
      const text = String(await probe.call('probe/read', { path }));
      await expect(probe.call('probe/write', { path, text })).rejects.toMatchObject({ code: 'EROFS' });
    }
    await expect(probe.call('probe/write', { path: '/proc/sysrq-trigger', text: '' })).rejects.toThrow();
  });

  test('has its own processes and host name', async () => {
    const { probe } = await bench.running();
    const identity = await probe.call('probe/identity');
    expect(identity).toMatchObject({ pid: expect.toSatisfy((pid: number) => pid < 50) });
    await expect(probe.call('probe/read', { path: `/proc/${process.pid}/environ` })).rejects.toThrow();
  });
}

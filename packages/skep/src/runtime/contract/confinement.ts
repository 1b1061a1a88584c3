import { mkdir, readFile, writeFile } from 'node:fs/promises';
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

  coveredMounts(bench);

  test('writes nowhere of its own but in memory where that is asked for', async () => {
    const { name, probe } = await bench.running({ readOnly: true });
    await expect(probe.call('probe/write', { path: '/usr/own', text: 'x' })).rejects.toMatchObject({
      code: 'EROFS',
    });
    expect(await probe.call('probe/write', { path: '/tmp/own', text: 'x' })).toBe('written');
    await bench.runtime.stop(name, 0);
    await bench.runtime.start(name);
    expect(await bench.runtime.inspect(name)).toMatchObject({ state: 'running' });
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

function coveredMounts(bench: ContractBench): void {
  test('sees something empty, which it cannot change, where a mount is covered', async () => {
    const [shown, nothing] = [await bench.folder('shown'), await bench.folder('nothing')];
    await mkdir(path.join(shown, 'keys'));
    for (const name of ['.env', 'keys/key', '.skepignore']) await writeFile(path.join(shown, name), 'secret');
    await writeFile(path.join(nothing, 'file'), '');
    await mkdir(path.join(nothing, 'directory'));
    const over = (source: string, name: string) => ({ source, target: `/data/${name}`, readOnly: true });
    const { probe } = await bench.running({
      mounts: [{ source: shown, target: '/data', readOnly: false }],
      overlays: [
        over(path.join(nothing, 'file'), '.env'),
        over(path.join(nothing, 'directory'), 'keys'),
        over(path.join(shown, '.skepignore'), '.skepignore'),
      ],
    });
    expect(await probe.call('probe/read', { path: '/data/.env' })).toBe('');
    await expect(probe.call('probe/read', { path: '/data/keys/key' })).rejects.toMatchObject({
      code: 'ENOENT',
    });
    for (const name of ['.env', 'keys/key', '.skepignore']) {
      const write = probe.call('probe/write', { path: `/data/${name}`, text: 'x' });
      await expect(write).rejects.toMatchObject({ code: 'EROFS' });
    }
    expect(await probe.call('probe/write', { path: '/data/other', text: 'x' })).toBe('written');
  });
}

import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import type { ContractBench } from './bench.ts';

/** What workloads share by the name of a volume. */
export function volumesContract(bench: ContractBench): void {
  const owner = randomBytes(4).toString('hex');
  const labels = { 'skep.test': 'contract', 'skep.state': owner };
  const sharing = (volume: string, readOnly: boolean, target = '/srv/shared') =>
    bench.running({ labels, volumes: [{ volume, target, readOnly }] });

  test('shares a volume between workloads that name it, read-only where that is said, and keeps it', async () => {
    const { runtime } = bench;
    const path = '/srv/shared/note';
    const first = await sharing('notes', false);
    expect(await first.probe.call('probe/write', { path, text: 'first' })).toBe('written');
    const second = await sharing('notes', true, '/srv/seen');
    const seen = '/srv/seen/note';
    expect(await second.probe.call('probe/read', { path: seen })).toBe('first');
    await expect(second.probe.call('probe/write', { path: seen, text: 'x' })).rejects.toMatchObject({
      code: 'EROFS',
    });
    const third = await sharing('notes', false);
    expect(await third.probe.call('probe/write', { path, text: 'third' })).toBe('written');
    expect(await first.probe.call('probe/read', { path })).toBe('third');
    for (const { name } of [first, second, third]) await runtime.remove(name);
    expect(await runtime.holdsData(first.name, owner, ['notes'])).toBe(true);
    expect(await runtime.holdsData(first.name, owner)).toBe(false);
    const again = await sharing('notes', true);
    expect(await again.probe.call('probe/read', { path })).toBe('third');
    await runtime.remove(again.name);
    await runtime.removeData(again.name, owner, ['notes']);
    expect(await runtime.holdsData(first.name, owner, ['notes'])).toBe(false);
  });

  test('gives other names other volumes, and leaves none in which nothing was written', async () => {
    const { runtime } = bench;
    const [one, other] = [await sharing('one', false), await sharing('other', false)];
    const path = '/srv/shared/note';
    await one.probe.call('probe/write', { path, text: 'x' });
    await expect(other.probe.call('probe/read', { path })).rejects.toMatchObject({ code: 'ENOENT' });
    for (const { name } of [one, other]) await runtime.remove(name);
    expect(await runtime.holdsData(other.name, owner, ['other'])).toBe(false);
    expect(await runtime.holdsData(one.name, owner, ['one'])).toBe(true);
    await runtime.removeData(one.name, owner, ['one']);
  });
}

import { readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';

interface Item {
  readonly name: string;
  readonly url: string;
  readonly status: string;
}

async function listed(skep: CommandUnderTest): Promise<readonly Item[]> {
  const items = JSON.parse(await skep.output('list --all --format json')) as readonly Item[];
  return items.map(({ name, url, status }) => ({ name, url, status }));
}

/** As when the power fails: nothing runs any more, and what was written last stays, by processes of another boot. */
async function reboot(skep: CommandUnderTest): Promise<void> {
  await skep.killSupervisor();
  for (const { name } of await skep.runtime.list()) {
    await skep.runtime.stop(name);
    const file = join(skep.places.statusesDir, `${name}.json`);
    const status = JSON.parse(await readFile(file, 'utf8')) as { readonly process_id: number };
    if (status.process_id === 0) continue;
    const other = { process_id: process.pid, process_started: 'another-boot 4711' };
    await writeFile(file, JSON.stringify({ ...status, ...other }));
  }
}

test('the supervisor that is started after a reboot starts again what ran, at the same address, and nothing else', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name one');
  await skep.output('run fake:1 --name two');
  await skep.output('stop two');
  const before = await listed(skep);
  await reboot(skep);
  expect((await skep.runtime.inspect('one'))?.state).toBe('exited');
  await skep.startSupervisor();
  await vi.waitFor(async () => expect(await listed(skep)).toEqual(before), { timeout: 5_000 });
  expect((await skep.runtime.inspect('one'))?.state).toBe('running');
  expect((await skep.runtime.inspect('two'))?.state).toBe('exited');
});

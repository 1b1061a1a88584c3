import { expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from './command-under-test.fixture.ts';

test('a server runs, is shown, stopped, started and removed by commands alone', async () => {
  const skep = await commandUnderTest();
  const url = (await skep.output('run fake:1 --name a1')).trim();
  expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+\/mcp$/);
  expect(await skep.output('list')).toContain(url);
  expect(await skep.left()).toEqual({ saved: ['a1'], statuses: ['a1'], workloads: ['a1'] });
  await skep.output('stop a1');
  expect(await skep.output('list')).toBe('No MCP servers found\n');
  await skep.output('start a1');
  expect(await skep.output('list')).toContain(url);
  await skep.output('rm a1');
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});

test('a supervisor that died is followed by one that takes up what it hosted', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1');
  await skep.killSupervisor();
  expect(JSON.parse(await skep.output('list --format json'))).toMatchObject([
    { name: 'a1', status: 'running' },
  ]);
  expect(skep.runtime.startsOf('a1')).toBe(1);
});

test('what fails is told as a terminal shows it, with its exit status', async () => {
  const skep = await commandUnderTest();
  expect(await skep.run('status missing')).toEqual({
    status: 1,
    out: '',
    err: 'Error: workload "missing" not found; see the names with skep list --all\n',
  });
});

test('the last workload goes with everything that was made for it, but for the configuration', async () => {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1');
  await skep.output('rm --all');
  expect(await skep.left()).toEqual(NOTHING_LEFT);
});

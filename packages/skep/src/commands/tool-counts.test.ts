import { expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const toolCounts = [
  { name: 'read', calls: 3, errors: 0, ms: 60.4 },
  { name: 'write\u001b[2J', calls: 12, errors: 1, ms: 25_000 },
];

test('what was counted of the tools is shown, the most called first, and handed to scripts', async () => {
  const skep = await commandUnderTest({ toolCounts });
  await skep.output(RUN);
  const status = await skep.output('status a1');
  expect(status).toMatch(/^Calls: +write\uFFFD\[2J: 12, 1 failed, 2\.1 s each\n +read: 3, 20 ms each$/mu);
  const items = [
    { tool: 'read', calls: 3, errors: 0, seconds: 0.06 },
    { tool: 'write\u001b[2J', calls: 12, errors: 1, seconds: 25 },
  ];
  expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ tool_calls: items });
  expect(JSON.parse(await skep.output('list --format json'))).toMatchObject([{ tool_calls: items }]);
  const [head = '', row = ''] = (await skep.output('list -o wide')).split('\n');
  expect(head).toMatch(/CALLS +ERRORS +TIME$/);
  expect(row).toMatch(/ 15 +1 +1\.7 s$/);
  // Whoever does not ask for it does not wait for it.
  expect(await skep.output('list')).not.toContain('CALLS');
});

test('of a server that nobody has called there is nothing, and of one that does not run nobody knows', async () => {
  const skep = await commandUnderTest();
  await skep.output(RUN);
  expect(await skep.output('status a1')).not.toContain('Calls');
  expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ tool_calls: [] });
  await skep.output('stop a1');
  expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ tool_calls: null });
  expect(await skep.output('list --all -o wide')).toMatch(/CALLS/);
});

test('nothing is started to hear of it, and nothing fails for want of it', async () => {
  const skep = await commandUnderTest({ supervisor: 'none' });
  expect(JSON.parse(await skep.output('list --all --format json'))).toEqual([]);
});

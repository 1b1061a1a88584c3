import { expect, test, vi } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { catalogueOf, imagePackage } from './catalogue.fixture.ts';
import { MemoryRuntime } from '../runtime/doubles/memory-runtime.ts';
import { idle } from '../runtime/doubles/program.ts';

/** One that is behind, one that is not, and an image. */
async function three(): Promise<CommandUnderTest> {
  const runtime = new MemoryRuntime({ 'fake@1.0.0': idle, 'fake@2.0.0': idle, 'img:1': idle });
  runtime.versions.set('fake', '2.0.0');
  const skep = await commandUnderTest({ runtime });
  await skep.output('run npx://fake@1.0.0 --name a1');
  await skep.output('run npx://fake --name a2');
  await skep.output('run img:1 --name a3');
  return skep;
}

const upgradesIn = async (skep: CommandUnderTest): Promise<unknown> => {
  const items = JSON.parse(await skep.output('list --check-upgrades --format json')) as {
    upgrade: unknown;
  }[];
  return items.map(({ upgrade }) => upgrade);
};

test('list --check-upgrades says what is newer, what is current, and what nobody can tell', async () => {
  const skep = await three();
  const [head = '', ...rows] = (await skep.output('list --check-upgrades')).trimEnd().split('\n');
  expect(head).toMatch(/ {3}UPGRADE$/);
  expect(rows.map((row) => row.split(/ {2,}/).at(-1))).toEqual(['2.0.0', 'current', '-']);
  expect(await upgradesIn(skep)).toEqual(['2.0.0', 'current', null]);
  expect(await skep.output('list')).not.toContain('UPGRADE');
  expect(await skep.output('list --format json')).not.toContain('"upgrade"');
});

test.each([60, 80, 120])('list --check-upgrades fits a terminal of %d columns', async (widthOut) => {
  const shown = await (
    await three()
  ).output('list --check-upgrades', { terminal: { widthOut, liveOut: true } });
  for (const line of shown.trimEnd().split('\n')) expect(line.length).toBeLessThanOrEqual(widthOut);
  expect(shown).toContain('2.0.0');
});

test('list --check-upgrades waits for no registry that does not answer, and fails for none that does not know', async () => {
  const skep = await three();
  vi.spyOn(skep.runtime, 'newest').mockRejectedValue(new TypeError('refused'));
  expect(await upgradesIn(skep)).toEqual([null, null, null]);
  vi.spyOn(skep.runtime, 'newest').mockImplementation(() => new Promise(() => {}));
  const timeout = vi.spyOn(AbortSignal, 'timeout').mockImplementation(() => {
    const ending = new AbortController();
    setImmediate(() => ending.abort());
    return ending.signal;
  });
  expect(await upgradesIn(skep)).toEqual([null, null, null]);
  timeout.mockRestore();
});

test('list --check-upgrades knows an image that was verified as the one of its entry', async () => {
  const verified = `img:1@sha256:${'a'.repeat(64)}`;
  const runtime = new MemoryRuntime({ 'img:1': idle, [verified]: idle });
  const catalogue = catalogueOf({ 'com.example/img': { packages: [imagePackage({ identifier: 'img:1' })] } });
  const skep = await commandUnderTest({ runtime, catalogue });
  const prepare = runtime.prepare.bind(runtime);
  vi.spyOn(runtime, 'prepare').mockImplementation(async (request) => ({
    ...(await prepare(request)),
    reference: verified,
  }));
  await skep.output('run com.example/img --name a1');
  expect(await upgradesIn(skep)).toEqual([null]);
});

test.each(['mcpservers', 'cursor'])('list --check-upgrades does not go with --format %s', async (format) => {
  const skep = await commandUnderTest();
  expect(await skep.refusal(`list --check-upgrades --format ${format}`)).toContain('does not go with');
});

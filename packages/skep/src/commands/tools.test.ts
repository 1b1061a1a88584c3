import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT } from '../command-under-test.fixture.ts';

const RUN = 'run fake:1 --name a1 --transport stdio';
const read = { read: { name: 'look', description: 'Looks' } };
const file = (toolsOverride: unknown): object => ({ toolsOverride });
const FILES = {
  'good.json': file(read),
  'empty.json': file({}),
  'idle.json': file({ read: { name: '' } }),
  'nameless.json': file({ '': { name: 'x' } }),
  'twice.json': file({ a: { name: 'x' }, b: { name: 'x' } }),
  'shape.json': file({ read: { name: 3 } }),
  'extra.json': { ...file(read), toolsFilter: [] },
  'none.json': [],
  'again.json': '{"toolsOverride":{"read":{"name":"a"},"read":{"name":"b"}}}',
  'broken.json': '{"toolsOverride":',
};

describe('what clients see of the tools', () => {
  test.each([
    ['--tools=', '--tools names a tool without a name'],
    ['--tools a,,b', '--tools names a tool without a name'],
    ['--tools-override=', '--tools-override is empty'],
    ['--tools-override nowhere.json', 'tools override "WORK/nowhere.json" does not exist'],
    ['--tools-override empty.json', 'tools override "WORK/empty.json": "toolsOverride" is empty'],
    ['--tools-override idle.json', 'the override of "read" has neither a name nor a description'],
    ['--tools-override nameless.json', 'the name of a tool is empty'],
    ['--tools-override twice.json', 'the tools "a" and "b" would both be shown as "x"'],
    ['--tools-override shape.json', 'line 1: "toolsOverride.read.name" must be text'],
    ['--tools-override extra.json', 'has an unknown key: "toolsFilter"'],
    ['--tools-override none.json', 'must be an object'],
    ['--tools-override again.json', 'again.json": has "read" twice'],
    ['--tools-override broken.json', 'broken.json" is not valid JSON'],
  ])('is refused as %s, and nothing is made', async (flags, message) => {
    const skep = await commandUnderTest({ files: FILES });
    expect(await skep.refusal(`${RUN} ${flags}`)).toContain(message);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('is saved with the workload, exported without the path, and imported again', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output([...RUN.split(' '), '--tools', ' look , b', '--tools', 'c', '--tools-override', 'good.json']); // prettier-ignore
    const config = async (path: string): Promise<unknown> => JSON.parse(await readFile(path, 'utf8'));
    const saved = join(skep.places.runConfigsDir, 'a1.json');
    const tools = { tools_filter: ['look', 'b', 'c'], tools_override: read };
    expect(await config(saved)).toMatchObject({
      ...tools,
      tools_override_path: join(skep.cwd, 'good.json'),
    });
    await skep.output('export a1 out.json');
    const exported = await config(join(skep.cwd, 'out.json'));
    expect(exported).toMatchObject(tools);
    expect(exported).not.toHaveProperty('tools_override_path');
    await skep.output('rm a1');
    await skep.output('run --from-config out.json');
    expect(await config(saved)).toMatchObject(tools);
    await skep.output('export a1 again.json');
    expect(await config(join(skep.cwd, 'again.json'))).toEqual(exported);
  });

  test('is in the list for scripts where only some are offered', async () => {
    const skep = await commandUnderTest({ files: FILES });
    await skep.output(`${RUN} --tools look,b`);
    await skep.output('run fake:1 --name a2 --tools-override good.json');
    const [some, all] = JSON.parse(await skep.output('list --format json')) as readonly object[];
    expect(some).toMatchObject({ name: 'a1', tools: ['look', 'b'] });
    expect(all).not.toHaveProperty('tools');
    const keys = Object.keys(some ?? {});
    expect(keys.indexOf('tools')).toBe(keys.indexOf('group') + 1);
  });

  test('is taken from the steps of an imported file, and a path in one is nothing', async () => {
    const parameters = { filter_tools: ['look'], tools_override: read };
    const steps = ['tool-filter', 'tool-call-filter'].map((type) => ({ type, parameters }));
    const base = { name: 'a1', image: 'fake:1', transport: 'stdio' };
    const skep = await commandUnderTest({
      files: {
        'a.json': { ...base, middleware_configs: steps, tools_override_path: '/etc/passwd' },
        'b.json': { ...base, tools_override: { a: { name: 'b' }, c: { name: 'b' } } },
      },
    });
    expect(await skep.refusal('run --from-config b.json')).toContain('would both be shown as "b"');
    await skep.output('run --from-config a.json');
    const saved: unknown = JSON.parse(await readFile(join(skep.places.runConfigsDir, 'a1.json'), 'utf8'));
    expect(saved).toMatchObject({ tools_filter: ['look'], tools_override: read });
    expect(saved).not.toHaveProperty('tools_override_path');
  });
});

import { describe, expect, test } from 'vitest';
import { commandUnderTest, NOTHING_LEFT, type CommandUnderTest } from '../command-under-test.fixture.ts';

const server = (more: object = {}): object => ({
  image: 'fake:1',
  description: 'd',
  transport: 'stdio',
  ...more,
});
const KEYED = { env_vars: [{ name: 'TOKEN', description: 'Key', required: true, secret: true }] };

/** An older catalogue with groups of these members, by group. */
function catalogueWith(groups: Readonly<Record<string, object>>): object {
  const listed = Object.entries(groups).map(([name, servers]) => ({ name, description: 'd', servers }));
  return { version: '1', servers: { alone: server() }, groups: listed };
}

const groupsOf = async (skep: CommandUnderTest): Promise<unknown> =>
  (JSON.parse(await skep.output('group list --format json')) as { name: string; workloads: string[] }[]).map(
    ({ name, workloads }) => [name, workloads],
  );

describe('skep group run', () => {
  test('runs every server of the group, in a group of that name', async () => {
    const skep = await commandUnderTest({
      catalogue: catalogueWith({ web: { a1: server(), 'x.test/b1': server() }, other: { c1: server() } }),
    });
    const { status, out, err } = await skep.run('group run web');
    expect(status).toBe(0);
    expect(out.trimEnd().split('\n')).toHaveLength(2);
    expect(err.endsWith("Group 'web': 2 of 2 servers started\n")).toBe(true);
    expect(await groupsOf(skep)).toEqual([
      ['default', []],
      ['web', ['a1', 'b1']],
    ]);
    expect((await skep.runtime.inspect('a1'))?.state).toBe('running');
  });

  test('puts them into the group that is named, and keeps apart what has one short name', async () => {
    const skep = await commandUnderTest({
      catalogue: catalogueWith({ web: { 'x.test/a1': server(), 'y.test/a1': server() } }),
    });
    await skep.output('group run web --group team');
    expect(await groupsOf(skep)).toContainEqual(['team', ['x-test-a1', 'y-test-a1']]);
  });

  test('asks for all that is missing before anything is made, saying for which server', async () => {
    const skep = await commandUnderTest({
      catalogue: catalogueWith({ web: { a1: server(KEYED), b1: server(KEYED) } }),
    });
    // No answer for either: the first question ends it.
    await skep.run('group run web', { answers: {} });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await groupsOf(skep)).toEqual([['default', []]]);
    await skep.output('group run web -e a1.TOKEN=one', { answers: { TOKEN: 'two' } });
    expect(await groupsOf(skep)).toContainEqual(['web', ['a1', 'b1']]);
  });

  test.each([
    [{ a1: server(), b1: server(KEYED) }, 'missing required environment variable: TOKEN'],
    [{ a1: server(), b1: server({ permissions: { privileged: true } }) }, 'which is not granted'],
    [{ a1: server(), alone2: { description: 'no image' } }, 'cannot be run from the catalogue; its entry is'],
    [
      { a1: server(), 'npx://evil': server() },
      'server "npx://evil" of the group cannot be run from the catalogue',
    ],
    [{ a1: server(), 'evil/image:1': server({ image: '' }) }, 'cannot be run from the catalogue'],
    [{ a1: server(), taken: server() }, "workload with name 'taken' already exists"],
    [{}, 'has 0 servers; a group of 1 to 50'],
  ])('nothing is made when one of %j cannot be run', async (members, said) => {
    const skep = await commandUnderTest({ catalogue: catalogueWith({ web: members }) });
    await skep.output('run fake:1 --name taken');
    const before = await groupsOf(skep);
    expect(await skep.refusal('group run web')).toContain(said);
    expect(await groupsOf(skep)).toEqual(before);
  });

  test('one that fails at its start does not keep the others from running', async () => {
    const skep = await commandUnderTest({
      catalogue: catalogueWith({ web: { a1: server(), b1: server({ image: 'nowhere:1' }), c1: server() } }),
    });
    const { status, err } = await skep.run('group run web');
    expect(status).toBe(1);
    expect(err).toContain('b1 was not started: ');
    expect(err).toContain("Group 'web': 2 of 3 servers started\n");
    expect(await groupsOf(skep)).toContainEqual(['web', ['a1', 'c1']]);
  });

  test('a group is not left where no server came of it', async () => {
    const skep = await commandUnderTest({
      catalogue: catalogueWith({ web: { a1: server({ image: 'nowhere:1' }) } }),
    });
    expect((await skep.run('group run web')).status).toBe(1);
    expect(await groupsOf(skep)).toEqual([['default', []]]);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test.each([
    ['group run wed', 'group "wed" not found in the catalogue; did you mean "web"?'],
    [
      'group run web -e b1.TOKEN=x',
      '--env names no server of the group: "b1.TOKEN"; write SERVER.KEY=VALUE, with one of: a1',
    ],
    ['group run web -e TOKEN=secret.x', '--env names no server of the group: "TOKEN"'],
    ['group run web --group Team', 'invalid group name "Team"; use lower-case letters'],
    ['group run Web/..', 'invalid group name "Web/.."; choose another with --group'],
    ['run web', 'it is a group of the catalogue: run its servers with skep group run web'],
    ['group run', 'missing argument NAME'],
  ])('%s is refused', async (line, said) => {
    const catalogue = catalogueWith({ web: { a1: server() }, 'Web/..': { a1: server() } });
    const refusal = await (await commandUnderTest({ catalogue })).refusal(line);
    expect(refusal).toContain(said);
    expect(refusal).not.toContain('secret');
  });

  test('says so where the catalogue has no groups', async () => {
    expect(await (await commandUnderTest()).refusal('group run web')).toContain(
      'the catalogue has no groups',
    );
  });
});

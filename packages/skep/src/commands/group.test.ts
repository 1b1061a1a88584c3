import { mkdir, readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { commandUnderTest, type CommandUnderTest } from '../command-under-test.fixture.ts';

async function twoGroups(): Promise<CommandUnderTest> {
  const skep = await commandUnderTest();
  await skep.output('group create team');
  await skep.output('run fake:1 --name a1 --group team -l tier=one');
  await skep.output('run fake:1 --name a2 --group team -l tier=two');
  await skep.output('run fake:1 --name b1 -l tier=one');
  return skep;
}

const groupOf = async (skep: CommandUnderTest, name: string): Promise<unknown> =>
  (JSON.parse(await skep.output(`status ${name} --format json`)) as { group: unknown }).group;

const namesOf = async (skep: CommandUnderTest, flags: string): Promise<unknown> =>
  (JSON.parse(await skep.output(`list ${flags} --format json`)) as { name: unknown }[]).map(
    ({ name }) => name,
  );

describe('skep group', () => {
  test('lists what there is, with servers and clients', async () => {
    const skep = await twoGroups();
    expect(await skep.output('group list')).toBe('NAME      SERVERS   CLIENTS\ndefault   1\nteam      2\n');
    expect(JSON.parse(await skep.output('group list --format json'))).toEqual([
      { name: 'default', workloads: ['b1'], registered_clients: [] },
      { name: 'team', workloads: ['a1', 'a2'], registered_clients: [] },
    ]);
  });

  test.each([
    ['group create team', "Error: group 'team' already exists; choose another name\n"],
    ['group create default', "Error: group 'default' already exists; choose another name\n"],
    [
      ['group', 'create', 'Team/../x'],
      'Error: invalid group name "Team/../x"; use lower-case letters, digits, _ and -, with single spaces between words\n',
    ],
    [
      ['group', 'create', 'a\u001b[31mb'],
      'Error: invalid group name "a�[31mb"; use lower-case letters, digits, _ and -, with single spaces between words\n',
    ],
    [
      'group rm default',
      "Error: the group 'default' cannot be removed; servers that were given no group are in it\n",
    ],
    ['group rm tem', 'Error: group \'tem\' does not exist; did you mean "team"?\n'],
    ['run fake:1 --name c1 --group tea', 'Error: group \'tea\' does not exist; did you mean "team"?\n'],
    [
      'stop --group absent',
      "Error: group 'absent' does not exist; create it with skep group create absent\n",
    ],
    ['group crate x', 'Error: unknown command "skep group crate"; did you mean "create"?\n'],
  ])('%j is refused', async (line, said) => {
    const skep = await commandUnderTest();
    await skep.output('group create team');
    expect(await skep.refusal(line)).toBe(said);
  });

  test('what is removed leaves its servers in default, running', async () => {
    const skep = await twoGroups();
    await skep.output('stop a2');
    const { out, err, status } = await skep.run('group rm team', { agrees: true });
    expect({ status, out }).toEqual({ status: 0, out: 'team\n' });
    expect(err).toBe("WARNING: these servers of the group 'team' move to default: a1, a2\n");
    expect(skep.asked).toEqual(["Remove the group 'team'?"]);
    expect([await groupOf(skep, 'a1'), await groupOf(skep, 'a2')]).toEqual(['default', 'default']);
    expect((await skep.runtime.inspect('a1'))?.state).toBe('running');
    expect(skep.runtime.startsOf('a1')).toBe(1);
    await skep.output('start a2');
    expect(await groupOf(skep, 'a2')).toBe('default');
  });

  test('takes its servers along when it is told to, stopped ones too, and no others', async () => {
    const skep = await twoGroups();
    await skep.output('stop a2');
    const { err } = await skep.run('group rm --with-workloads team');
    expect(err).toContain("of the group 'team' are removed; their data stays: a1, a2");
    expect(await skep.left()).toEqual({ saved: ['b1'], statuses: ['b1'], workloads: ['b1'] });
    expect(await skep.output('group list')).not.toContain('team');
  });

  test.each(['group rm team', 'group rm --with-workloads team'])(
    '%s does nothing where the person does not agree',
    async (line) => {
      const skep = await twoGroups();
      expect(await skep.run(line, { agrees: false })).toMatchObject({
        status: 0,
        out: 'Group deletion cancelled.\n',
      });
      expect(await groupOf(skep, 'a1')).toBe('team');
      expect(await skep.output('group list')).toContain('team');
    },
  );

  test('a damaged file is a line of its own, and stays as it is', async () => {
    const skep = await commandUnderTest();
    await mkdir(skep.places.groupsDir, { recursive: true });
    await writeFile(join(skep.places.groupsDir, 'team.json'), '{"name":');
    expect(await skep.run('group list')).toMatchObject({
      status: 0,
      out: 'NAME      SERVERS   CLIENTS\ndefault   0\nteam      0         unknown\n',
      err: expect.stringMatching(/^Warning: group file ".*team.json" is not valid JSON.*\n$/),
    });
    expect(await skep.refusal('run fake:1 --group team')).toMatch(/^Error: group file .*\n$/);
    expect(await skep.refusal('group rm team')).toMatch(/^Error: group file .*\n$/);
    expect(await readdir(skep.places.groupsDir)).toEqual(['team.json']);
  });
});

describe('workloads in groups', () => {
  test.each([
    ['--group team', ['a1', 'a2']],
    ['-g default', ['b1']],
    ['-l tier=one', ['a1', 'b1']],
    ['-l tier=one --group team', ['a1']],
    ['-l tier=one -l tier=two', []],
    ['--group nothere', []],
  ])('list %s shows %j', async (flags, names) => {
    expect(await namesOf(await twoGroups(), flags)).toEqual(names);
  });

  test.each([
    ['stop -g team', ['a1', 'a2']],
    ['stop -l tier=one', ['a1', 'b1']],
    ['rm -l tier=one -g team', ['a1']],
    ['rm --group team', ['a1', 'a2']],
  ])('%s means %j', async (line, names) => {
    const skep = await twoGroups();
    expect((await skep.output(line)).trimEnd().split('\n').toSorted()).toEqual(names);
    const left = ['a1', 'a2', 'b1'].filter((name) => !names.includes(name));
    expect(await namesOf(skep, '')).toEqual(left);
  });

  test('start of a group says how many came up, and why the others did not', async () => {
    const skep = await twoGroups();
    await skep.output('stop --all');
    const { err: told } = await skep.run('start -g team');
    expect(told.endsWith('\nRestart summary: 2 succeeded, 0 failed\n')).toBe(true);
    expect(await namesOf(skep, '')).toEqual(['a1', 'a2']);
    const { status, err } = await skep.run('restart a1 x1 x2');
    expect(status).toBe(1);
    expect(err).toBe(
      'Restart summary: 1 succeeded, 2 failed\n  x1: workload "x1" not found\n  x2: workload "x2" not found\n' +
        'Error: 2 of 3 failed; the first: workload "x1" not found; see the names with skep list --all\n',
    );
  });

  test.each([
    ['stop -l tier=nine', 'No running MCP servers found with label tier=nine\n'],
    ['start -l tier=nine -g team', "No MCP servers found in group 'team' with label tier=nine\n"],
    ['rm -l tier=nine', 'No workloads found with label tier=nine\n'],
    ['list -l tier=nine', 'No MCP servers found\n'],
    ['list -g nothere', "No MCP servers found in group 'nothere'\n"],
  ])('%s says that nothing is meant', async (line, said) => {
    expect(await (await twoGroups()).output(line)).toBe(said);
  });

  test.each([
    ['list --group team', "No MCP servers found in group 'team'\n"],
    ['stop --group team', "No running MCP servers found in group 'team'\n"],
    ['start --group team', "No MCP servers found in group 'team'\n"],
    ['start --all', 'No MCP servers found\n'],
    ['rm --group team', "No workloads found in group 'team'\n"],
  ])('%s says that there is none', async (line, said) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    await skep.output('group create team');
    expect(await skep.output(line)).toBe(said);
  });

  test.each([
    ['rm -l tier', 'invalid label "tier"; write key=value'],
    ['stop -l skep.name=a1', 'invalid label "skep.name=a1"; keys and values have'],
    [['list', '-l', 'a=b\u001b]0;x\u0007'], 'invalid label "a=b�]0;x�"; keys and values have'],
    ['rm --all -l a=b', '--all cannot be used together with --label'],
    ['rm a1 -l a=b', 'no arguments should be provided with --label'],
  ])('%j is refused', async (line, said) => {
    expect(await (await commandUnderTest()).refusal(line)).toContain(`Error: ${said}`);
  });

  test('a failed server is not run again in another group', async () => {
    const skep = await twoGroups();
    const path = join(skep.places.statusesDir, 'a1.json');
    const status = JSON.parse(await skep.read(path)) as object;
    await skep.output('stop a1');
    await writeFile(path, JSON.stringify({ ...status, status: 'error', process_id: 0 }));
    expect(await skep.refusal('run fake:1 --name a1')).toContain("workload 'a1' is already in group 'team'");
    await skep.output('run fake:1 --name a1 --group team');
  });

  test('an exported server comes back into its group, where that is there', async () => {
    const skep = await twoGroups();
    await skep.output('export a1 a1.json');
    await skep.output('rm a1');
    await skep.output('run --from-config a1.json');
    expect(await groupOf(skep, 'a1')).toBe('team');
    await skep.output('group rm --with-workloads team');
    expect(await skep.refusal('run --from-config a1.json')).toBe(
      "Error: group 'team' does not exist; create it with skep group create team\n",
    );
  });

  test('more labels than anybody needs are refused, and standard ones are nobody else’s', async () => {
    const skep = await commandUnderTest();
    const many = Array.from({ length: 10_000 }, (_, at) => ['-l', `k${at}=v`]).flat();
    expect(await skep.refusal(['run', 'fake:1', ...many])).toBe(
      'Error: 10000 labels are too many; give at most 256\n',
    );
    const long = await skep.refusal(['run', 'fake:1', '-l', `a=${'b'.repeat(5000)}`]);
    expect(long.length).toBeLessThan(300);
    expect(await skep.refusal('run fake:1 -l a..b/c=d')).toContain('invalid label "a..b/c=d"');
    expect(await skep.refusal('run fake:1 -l skep.managed=no')).toContain('skep. is reserved');
  });

  test('rm --all keeps the groups, which are configuration', async () => {
    const skep = await twoGroups();
    await skep.output('rm --all');
    expect(await skep.output('group list')).toContain('team');
    await skep.output('group rm team');
    await skep.output('rm --all');
    expect(await readdir(skep.places.stateDir).catch(() => [])).toEqual([]);
  });
});

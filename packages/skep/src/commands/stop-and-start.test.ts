import { readFile, rm } from 'node:fs/promises';
import { describe, expect, test, vi } from 'vitest';
import {
  commandUnderTest,
  ctrlC,
  NOTHING_LEFT,
  type CommandUnderTest,
} from '../command-under-test.fixture.ts';

const statusOf = async (skep: CommandUnderTest, name: string): Promise<unknown> =>
  (JSON.parse(await skep.output(`status ${name} --format json`)) as { status: unknown }).status;

const stateOf = async (skep: CommandUnderTest, name: string): Promise<unknown> =>
  (await skep.runtime.inspect(name))?.state;

async function twoServers(): Promise<CommandUnderTest> {
  const skep = await commandUnderTest();
  await skep.output('run fake:1 --name a1');
  await skep.output('run fake:1 --name a2');
  return skep;
}

describe('skep stop', () => {
  test('ends the named ones and no other', async () => {
    const skep = await twoServers();
    expect(await skep.run('stop a1')).toEqual({ status: 0, out: 'a1\n', err: '' });
    expect([await stateOf(skep, 'a1'), await stateOf(skep, 'a2')]).toEqual(['exited', 'running']);
    expect([await statusOf(skep, 'a1'), await statusOf(skep, 'a2')]).toEqual(['stopped', 'running']);
  });

  test.each(['--all', '-a', '--group default', 'a1 a2', 'a1 a2 a1'])('ends all with %s', async (which) => {
    const skep = await twoServers();
    const stopped = await skep.output(`stop ${which}`);
    expect(stopped.trimEnd().split('\n').toSorted()).toEqual(['a1', 'a2']);
    expect([await stateOf(skep, 'a1'), await stateOf(skep, 'a2')]).toEqual(['exited', 'exited']);
  });

  test.each([
    ['stop a1', 10_000],
    ['stop --timeout 0 a1', 0],
    ['stop --timeout 75 a1', 75_000],
  ])('%s leaves a server %d ms to end by itself', async (line, graceMs) => {
    const skep = await twoServers();
    const stop = vi.spyOn(skep.runtime, 'stop');
    await skep.output(line);
    expect(stop.mock.calls).toEqual([['a1', graceMs]]);
  });

  test('is no failure where nothing runs, so that scripts can stop before they start', async () => {
    const skep = await twoServers();
    await skep.output('stop a1');
    const { status, out, err } = await skep.run('stop a1 missing b/c');
    expect({ status, out }).toEqual({ status: 0, out: '' });
    // All at once, so in any order.
    expect(new Set(err.split('\n'))).toEqual(
      new Set([
        'Warning: workload "missing" not found',
        'Warning: invalid workload name "b/c"',
        'Warning: workload "a1" was not running',
        '',
      ]),
    );
  });

  test.each([
    ['--all', 'No running workloads to stop\n'],
    ['--group default', "No running MCP servers found in group 'default'\n"],
  ])('says so where nothing runs that %s could mean', async (which, said) => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.output(`stop ${which}`)).toBe(said);
  });

  test('starts no supervisor to stop what is stopped', async () => {
    const home = await twoServers();
    await home.output('stop --all');
    await home.killSupervisor();
    // None of this state directory would come up.
    await rm(home.places.supervisorDir, { recursive: true, force: true });
    expect(await home.run('stop a1')).toMatchObject({ status: 0 });
  });

  test('is told when the engine does not answer, and says nothing untrue meanwhile', async () => {
    const skep = await twoServers();
    skep.runtime.unreachable = true;
    const { status, err } = await skep.run('stop a1');
    expect(status).toBe(1);
    expect(err).toContain('the engine in memory is down');
    skep.runtime.unreachable = false;
    await skep.output('stop a1');
    expect(await statusOf(skep, 'a1')).toBe('stopped');
  });

  test('tells the first of several failures, and how many there were', async () => {
    const skep = await twoServers();
    skep.runtime.unreachable = true;
    const { status, err } = await skep.run('stop a1 a2');
    expect(status).toBe(1);
    expect(err).toMatch(/^Error: 2 of 2 failed; the first: the engine in memory is down; .*\n$/);
  });

  test('asked once more while it waits, ends the waiting and says that the work goes on', async () => {
    const pressed = ctrlC();
    pressed.press();
    const skep = await twoServers();
    const { status, err } = await skep.run('stop a1', { signal: pressed.signal });
    expect(status).toBe(1);
    expect(err).toBe('Error: not waited for; what was begun goes on; see skep list --all\n');
  });
});

describe('skep start', () => {
  test('starts a stopped one on the address that it had, with what it had', async () => {
    const skep = await commandUnderTest();
    const url = (await skep.output('run fake:1 --name a1 -e A=b -- one')).trim();
    await skep.output('stop a1');
    const { status, out, err } = await skep.run('start a1');
    expect({ status, out, err }).toEqual({
      status: 0,
      out: '',
      err: 'Starting a1\nWaiting for a1 to answer\n',
    });
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({
      url,
      status: 'running',
    });
    expect(skep.runtime.startsOf('a1')).toBe(2);
  });

  test.each(['start', 'restart'])('%s leaves alone what runs', async (word) => {
    const skep = await twoServers();
    await skep.output(`${word} a1`);
    expect(skep.runtime.startsOf('a1')).toBe(1);
  });

  test('starts all that are stopped, and fails with the name of the one that cannot', async () => {
    const skep = await twoServers();
    await skep.output('stop --all');
    await skep.output('start --all');
    expect([await statusOf(skep, 'a1'), await statusOf(skep, 'a2')]).toEqual(['running', 'running']);
    expect(await skep.refusal('start a1 missing')).toBe(
      'Restart summary: 1 succeeded, 1 failed\nError: workload "missing" not found; see the names with skep list --all\n',
    );
  });

  test('a server that crashes now stays with its files, its status and its last lines', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1 --no-check');
    await skep.output('stop a1');
    skep.runtime.crash = { exitCode: 2, says: 'no disk\n' };
    const { status, err } = await skep.run('start a1');
    // Without a question there is nothing that could find out at once.
    expect({ status, err }).toMatchObject({ status: 0 });
    expect(await skep.left()).toMatchObject({ saved: ['a1'], statuses: ['a1'] });
  });

  test('an image that was pruned meanwhile is fetched again', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    const prepared: string[] = [];
    skep.runtime.has = async () => false;
    const prepare = skep.runtime.prepare.bind(skep.runtime);
    skep.runtime.prepare = (request) => {
      prepared.push(request.source.kind === 'image' ? request.source.reference : request.source.name);
      return prepare(request);
    };
    await skep.output('start a1');
    expect(prepared).toEqual(['fake:1']);
  });

  test('what is to be hidden by now is hidden from then on', async () => {
    const skep = await commandUnderTest({ files: { '.env': 'TOKEN=1' } });
    await skep.output('run fake:1 --name a1 -v .:/data:ro --print-resolved-overlays');
    expect(skep.runtime.specOf('a1')?.overlays).toBeUndefined();
    await skep.output('stop a1');
    await skep.write('../.config/skep/skepignore', '.env\n');
    const { err } = await skep.run('start a1');
    expect(err).toMatch(/Overlays of .* \(mounted at \/data\):\n {2}\/data\/\.env is an empty file \(/);
    const [overlay] = skep.runtime.specOf('a1')?.overlays ?? [];
    expect(overlay).toMatchObject({ target: '/data/.env', readOnly: true });
    expect(await readFile(overlay?.source ?? '', 'utf8')).toBe('');
  });

  test('a longer time for calls is kept with the workload', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    await skep.output('stop a1');
    await skep.output('start a1', { env: { SKEP_PROXY_REQUEST_TIMEOUT: '5m' } });
    expect(JSON.parse(await skep.output('export a1 -'))).toMatchObject({ request_timeout: '5m0s' });
  });

  test('a time for calls that cannot be read is told, and what was saved holds', async () => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1', { env: { SKEP_PROXY_REQUEST_TIMEOUT: '5m' } });
    await skep.output('stop a1');
    const { status, err } = await skep.run('start a1', { env: { SKEP_PROXY_REQUEST_TIMEOUT: 'soon' } });
    expect([status, err]).toEqual([
      0,
      expect.stringMatching(/^Warning: .*"soon".*SKEP_PROXY_REQUEST_TIMEOUT.*; it counts as unset\n/),
    ]);
    expect(JSON.parse(await skep.output('export a1 -'))).toMatchObject({ request_timeout: '5m0s' });
  });

  test.each([
    ['start --foreground a1 a2', 'Error: --foreground takes exactly one name; keep one of them\n'],
    [
      'start',
      'Error: must specify either a workload name, --all, --group or --label; see the names with skep list --all\n',
    ],
    [
      'start --all a1',
      'Error: cannot specify both a workload name and --all; give names, or --all, not both\n',
    ],
    ['stop --all a1', 'Error: no arguments should be provided with --all; give names, or --all, not both\n'],
    [
      'start --group default a1',
      'Error: cannot specify both a workload name and --group; give names, or --group, not both\n',
    ],
    ['stop --group other', "Error: group 'other' does not exist; create it with skep group create other\n"],
    ['rm --all --group default', 'Error: --all cannot be used together with --group; keep one of them\n'],
    [
      'stop --timeout -1 a1',
      'Error: invalid value "-1" for --timeout: it must be between 0 and 3600; run the command with --help to see what is accepted\n',
    ],
  ])('%s is refused', async (line, message) => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    expect(await skep.refusal(line)).toBe(message);
  });
});

describe('skep rm', () => {
  test('takes the named one with all that was made for it, and no other', async () => {
    const skep = await twoServers();
    expect(await skep.run('rm a1')).toEqual({ status: 0, out: 'a1\n', err: '' });
    expect(await skep.left()).toEqual({ saved: ['a2'], statuses: ['a2'], workloads: ['a2'] });
  });

  test('removing what is not there is no error', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect(await skep.run('rm missing')).toEqual({
      status: 0,
      out: '',
      err: 'Warning: workload "missing" not found\n',
    });
  });

  test('a package goes with the last workload that ran from it', async () => {
    const skep = await commandUnderTest();
    await skep.output('run npx://fake --name a1');
    await skep.output('run npx://fake --name a2');
    await skep.output('rm a1');
    expect(skep.runtime.discarded).toEqual([]);
    await skep.output('rm a2');
    expect(skep.runtime.discarded).toEqual(['fake']);
  });

  test('an image that is not ours stays on the machine', async () => {
    const skep = await twoServers();
    await skep.output('rm a1 a2');
    expect(skep.runtime.discarded).toEqual([]);
  });

  test('a workload whose saved configuration is damaged can be removed', async () => {
    const skep = await twoServers();
    await skep.write('../.local/state/skep/runconfigs/a1.json', 'not JSON');
    await skep.output('rm a1');
    expect(await skep.left()).toEqual({ saved: ['a2'], statuses: ['a2'], workloads: ['a2'] });
  });

  test('all go with the supervisor and everything that they had in common', async () => {
    const skep = await twoServers();
    await skep.output('rm --all');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(await skep.output('rm --all')).toBe('No running workloads to delete\n');
  });

  test.each(['--all', '--group default'])('asks a person before %s takes data away', async (which) => {
    const skep = await twoServers();
    const refused = await skep.run(`rm ${which}`, { agrees: false });
    expect(refused).toEqual({ status: 1, out: '', err: 'Error: cancelled; nothing was removed\n' });
    expect(await skep.left()).toMatchObject({ saved: ['a1', 'a2'], workloads: ['a1', 'a2'] });
    expect(await skep.run(`rm ${which}`, { agrees: true })).toMatchObject({ status: 0 });
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    expect(skep.asked).toEqual(Array(2).fill('Remove a1, a2?'));
  });

  test.each(['a1', '--all --yes', '--all -y'])('asks nobody for rm %s', async (which) => {
    const skep = await commandUnderTest();
    await skep.output('run fake:1 --name a1');
    expect(await skep.output(`rm ${which}`, { agrees: false })).toBe('a1\n');
    expect(await skep.output('rm --all', { agrees: false })).toBe('No running workloads to delete\n');
    expect(skep.asked).toEqual([]);
  });

  test('what the engine has of ours without any saved state goes with --all', async () => {
    const skep = await twoServers();
    await skep.killSupervisor();
    for (const name of ['a1', 'a2']) {
      await rm(`${skep.places.runConfigsDir}/${name}.json`);
      await rm(`${skep.places.statusesDir}/${name}.json`);
    }
    await skep.output('rm --all');
    expect(await skep.left()).toEqual(NOTHING_LEFT);
  });

  test('files stay while the engine does not answer, so that nothing running is forgotten', async () => {
    const skep = await twoServers();
    skep.runtime.unreachable = true;
    expect((await skep.run('rm a1')).status).toBe(1);
    skep.runtime.unreachable = false;
    expect(await skep.left()).toMatchObject({ saved: ['a1', 'a2'], workloads: ['a1', 'a2'] });
  });

  test('a name that none can have is refused before anything is removed', async () => {
    const skep = await twoServers();
    expect(await skep.refusal('rm a1 ../a2')).toMatch(/^Error: invalid workload name "\.\.\/a2"; .*\n$/);
  });
});

import { describe, expect, test } from 'vitest';
import { systemClock, type Clock } from '@skep/core/time/clock.ts';
import { readFound } from '../supervisor/found-server.ts';
import { commandUnderTest, controlsIn } from '../command-under-test.fixture.ts';

// What a run says at its end, whoever carries it out.
const WAYS = ['up', 'asked'] as const;

test.each(WAYS)('a run says what the server may do (%s)', async (supervisor) => {
  const skep = await commandUnderTest({
    supervisor,
    files: {
      'notes/a': '',
      'profile.json': { network: { outbound: { allow_host: ['api.example.com'] } } },
    },
  });
  const line =
    'run fake:1 --name a1 -v ./notes:/notes:ro -e API_TOKEN=hush --permission-profile ./profile.json';
  const { status, err } = await skep.run(line);
  expect(status).toBe(0);
  expect(err).toMatch(/^ +Reads: +\S*work\/notes as \/notes$/m);
  expect(err).toMatch(/^ +Writes: +no files of this machine$/m);
  expect(err).toMatch(/^ +Network: +any host \(its profile lists api\.example\.com\)$/m);
  expect(err).toMatch(/^ +Secrets: +API_TOKEN$/m);
  expect(err).toMatch(/^ +Not Enforced: the hosts and ports/m);
  expect(err).not.toContain('hush');
  const { permissions } = JSON.parse(await skep.output('status a1 --format json')) as { permissions: object };
  expect(permissions).toMatchObject({ network: ['any host'], secrets: ['API_TOKEN'], writes: [] });
});

test.each(WAYS)('the card fits the terminal, and nothing in it steers that (%s)', async (supervisor) => {
  const skep = await commandUnderTest({ supervisor, files: { 'a\u202Eb/c': '' } });
  const terminal = { liveErr: true, width: 60 };
  const argv = [
    'run',
    'fake:1',
    '--name',
    'a1',
    '-v',
    './a\u202Eb:/x',
    '-e',
    'A_PASSWORD=x',
    '--network',
    'host',
  ];
  const { err } = await skep.run(argv, { terminal });
  const card = err.slice(err.lastIndexOf('Runs in:'));
  expect(controlsIn(card)).toEqual([]);
  expect(Math.max(...card.split('\n').map(({ length }) => length))).toBeLessThanOrEqual(60);
});

const tool = (name: string, description = ''): object => ({
  name,
  description,
  inputSchema: { type: 'object' },
});

test.each(WAYS)(
  'a run proves that the server answers, and says what its tools weigh (%s)',
  async (supervisor) => {
    const tools = [tool('find', 'x'.repeat(4000)), tool('keep', 'y'.repeat(6000))];
    const skep = await commandUnderTest({ supervisor, tools });
    const { err } = await skep.run('run fake:1 --name a1');
    expect(err).toMatch(/^✓ a1 is running \(fake 1\): 2 tools, ~2\.5 k tokens$/m);
    expect(await skep.output('status a1')).toMatch(/^Tools: +2 tools, ~2\.5 k tokens$/m);
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({
      server: { name: 'fake', version: '1', all_tools: true, tools: [{ name: 'find' }, { name: 'keep' }] },
    });
  },
);

test('a server without tools is said to have none, and one that was not asked nothing', async () => {
  const skep = await commandUnderTest();
  expect((await skep.run('run fake:1 --name a1')).err).toMatch(/^✓ a1 is running \(fake 1\): no tools$/m);
  expect((await skep.run('run fake:1 --name a2 --no-check')).err).not.toContain('✓');
  expect(JSON.parse(await skep.output('status a2 --format json'))).toMatchObject({ server: null });
});

test('what is known of a server is written anew at each start, and goes with its workload', async () => {
  const skep = await commandUnderTest({ tools: [tool('one')] });
  await skep.output('run fake:1 --name a1');
  expect(await readFound(skep.places, 'a1')).toMatchObject({ tools: [{ name: 'one' }], complete: true });
  await skep.write('../.local/share/skep/servers/a1.json', 'damaged');
  expect(await readFound(skep.places, 'a1')).toBeUndefined();
  await skep.output('stop a1');
  await skep.output('start a1');
  expect(await readFound(skep.places, 'a1')).toMatchObject({ tools: [{ name: 'one' }] });
  await skep.output('rm a1');
  expect(await readFound(skep.places, 'a1')).toBeUndefined();
});

test('whatever a server says of itself, the run goes on and nothing of it reaches the terminal raw', async () => {
  const skep = await commandUnderTest({
    greet: async () => ({ name: '\u001B[2J\u202Eevil\n', version: 'v'.repeat(5000) }),
    tools: [tool('\u001B]0;owned\u0007', 'z'.repeat(2 ** 20)), { name: 3 }, tool('b')],
  });
  const { status, err } = await skep.run('run fake:1 --name a1');
  expect(status).toBe(0);
  expect(err).toMatch(/: 2 tools, ~262 k tokens$/m);
  expect(
    [err, await skep.output('status a1'), await skep.output('status a1 --format json')].flatMap(controlsIn),
  ).toEqual([]);
});

describe('a short name of several servers', () => {
  const oci = [{ registryType: 'oci', identifier: 'fake:1', transport: { type: 'stdio' } }];
  const servers = ['com.example/notes', 'org.example/notes', 'org.example/alone'].map((name) => ({
    server: { name, version: '1.0.0', description: name, packages: oci },
  }));

  test('asks the person which one', async () => {
    const skep = await commandUnderTest({ catalogue: { servers } });
    await skep.output('run notes', { answers: { 'Which "notes"?': 'org.example/notes' } });
    expect(skep.asked).toEqual(['Which "notes"?']);
    expect((await skep.left()).saved).toEqual(['org-example-notes']);
  });

  test('fails with the list where nobody can be asked, and one that is unique runs', async () => {
    const skep = await commandUnderTest({ catalogue: { servers } });
    expect(await skep.refusal('run notes')).toMatch(/com\.example\/notes, org\.example\/notes/);
    await skep.output('run alone');
    expect((await skep.left()).saved).toEqual(['alone']);
  });
});

describe('how long a server may take to answer', () => {
  test.each([
    ['', 60_000],
    [' --check-timeout 90s', 90_000],
  ])('is a minute, or what the person says (%j)', async (flag, ms) => {
    const slept: number[] = [];
    const clock: Clock = {
      ...systemClock,
      sleep: (given, signal) => (slept.push(given), systemClock.sleep(given, signal)),
    };
    const skep = await commandUnderTest({ clock });
    await skep.output(`run fake:1 --name a1${flag}`);
    expect(slept).toContain(ms);
  });

  test('is kept for the next start, and one that answers in the last moment is ready', async () => {
    const { promise: late, resolve: answer } = Promise.withResolvers<object>();
    const clock: Clock = {
      ...systemClock,
      async sleep(ms, signal) {
        if (ms === 29_000) answer({ name: 'slow' });
        return systemClock.sleep(ms, signal);
      },
    };
    const skep = await commandUnderTest({ clock, greet: () => late });
    const { err } = await skep.run('run fake:1 --name a1 --check-timeout 29s');
    expect(err).toMatch(/^✓ a1 is running \(slow\)/m);
    expect(JSON.parse(await skep.output('export a1 -'))).toMatchObject({ check_timeout: '29s' });
  });
});

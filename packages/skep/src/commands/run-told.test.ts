import { expect, test } from 'vitest';
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

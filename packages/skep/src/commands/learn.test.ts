import { stat } from 'node:fs/promises';
import { describe, expect, test } from 'vitest';
import {
  commandUnderTest,
  controlsIn,
  ctrlC,
  NOTHING_LEFT,
  type CommandLine,
  type CommandUnderTest,
  type Outcome,
} from '../command-under-test.fixture.ts';
import type { Decision } from '../egress/decision.ts';
import type { SeenFiles } from '../runtime/runtime.ts';

const decided = (host: string, more: Partial<Decision> = {}): Decision => ({
  time: '2026-01-01T00:00:00.000Z',
  decision: 'allowed',
  host,
  port: 443,
  via: 'proxy',
  count: 1,
  ...more,
});
const FILES = { 'notes/today.txt': 'milk', 'out/x': '', 'unused/x': '', '.ssh/id_rsa': 'key' };

/** Runs it until the server can be used, then has it do that, then ends it. */
async function learned(
  skep: CommandUnderTest,
  line: CommandLine,
  did: { readonly decisions?: readonly Decision[]; readonly files?: SeenFiles } = {},
): Promise<Outcome> {
  const pressed = ctrlC();
  return skep.run(line, {
    signal: pressed.signal,
    onOut() {
      skep.runtime.decisions.set('a1', did.decisions ?? []);
      if (did.files) skep.runtime.files.set('a1', did.files);
      pressed.press();
    },
  });
}

const paths = (all: Readonly<Record<string, readonly [changes: boolean, there: boolean]>>): SeenFiles => ({
  paths: new Map(Object.entries(all).map(([path, [changes, there]]) => [path, { changes, there }])),
  complete: true,
  unseen: [],
});

const profileOf = async (skep: CommandUnderTest, file = 'a1.profile.json'): Promise<unknown> =>
  JSON.parse(await skep.read(file));

describe('skep run --learn', () => {
  test('watches the server under an open gateway, and proposes what it did, with the line that runs it so', async () => {
    const skep = await commandUnderTest({ files: FILES, supervisor: 'asked' });
    const mounts = ['-v', './notes:/notes', '-v', './out:/out', '-v', './unused:/unused'];
    const { status, err } = await learned(
      skep,
      [
        'run',
        'fake:1',
        '--name',
        'a1',
        '--learn',
        '--no-check',
        '-e',
        'TOKEN=secret',
        ...mounts,
        '--',
        'it is',
        'x',
      ],
      {
        decisions: [
          decided('api.example', { count: 3 }),
          decided('10.1.2.3', { decision: 'denied', port: 80 }),
        ],
        files: paths({ '/notes': [false, true], '/out': [true, true], '/tmp/x': [true, true] }),
      },
    );
    expect(status).toBe(0);
    expect(skep.runtime.specOf('a1')).toMatchObject({
      learns: true,
      isolation: { allowAll: true, hosts: [] },
    });
    expect(err.replaceAll(skep.cwd, 'WORK')).toContain(
      [
        'a1 was seen to do this:',
        '  Reaches:      api.example:443 × 3',
        '  Refused:      10.1.2.3:80 × 1',
        '  Reads:        WORK/notes (as /notes)',
        '                WORK/out (as /out)',
        '  Writes:       WORK/out (as /out)',
        '                /tmp/x (its own)',
        '  Does not use: WORK/unused (as /unused)',
        'The least profile that allows it is in ./a1.profile.json. Read it before you use it: a server asks for what it likes.',
        'Give these again with what they had: --env',
        "skep run fake:1 --name=a1 --no-check=true --permission-profile ./a1.profile.json --isolate-network -- 'it is' x",
        '',
      ].join('\n'),
    );
    expect(err).not.toContain('secret');
    expect(await profileOf(skep)).toEqual({
      name: 'a1',
      read: [`${skep.cwd}/notes:/notes`],
      write: [`${skep.cwd}/out:/out`],
      network: { outbound: { insecure_allow_all: false, allow_host: ['api.example'], allow_port: [443] } },
    });
    expect((await stat(`${skep.cwd}/a1.profile.json`)).mode & 0o777).toBe(0o600);
    expect(await skep.left()).toEqual(NOTHING_LEFT);
    await skep.output('run fake:1 --name a1 --permission-profile ./a1.profile.json --isolate-network');
    expect(skep.runtime.specOf('a1')).toMatchObject({
      isolation: { allowAll: false, hosts: ['api.example'] },
    });
    expect(skep.runtime.specOf('a1')).not.toHaveProperty('learns');
  });

  test('proposes paths of this machine that the server lacked, and neither secrets nor what is not there', async () => {
    const skep = await commandUnderTest({ files: FILES, supervisor: 'asked' });
    const at = (path: string): string => `${skep.cwd}/${path}`;
    const { err } = await learned(skep, 'run fake:1 --name a1 --learn --no-check', {
      files: paths({
        [at('notes/today.txt')]: [false, false],
        [at('out/new.txt')]: [true, false],
        [at('nowhere')]: [false, false],
        [at('.ssh/id_rsa')]: [false, false],
        [skep.home]: [true, false],
      }),
    });
    expect(await profileOf(skep)).toMatchObject({
      read: [`${at('notes/today.txt')}:${at('notes/today.txt')}`],
      write: [`${at('out')}:${at('out')}`],
    });
    expect(err.replaceAll(skep.cwd, 'WORK').replaceAll(skep.home, 'HOME')).toContain(
      [
        '  Lacks:        WORK/notes/today.txt (to read)',
        '                WORK/out (to write)',
        '  Not proposed: WORK/.ssh/id_rsa',
        '                HOME',
      ].join('\n'),
    );
  });

  test('says what could not be seen, and then leaves mounts as they were', async () => {
    const skep = await commandUnderTest({ files: FILES, supervisor: 'asked' });
    const paths = new Map([['/out', { changes: true, there: true }]]);
    const files = { paths, complete: false, unseen: ['which files it read'] };
    const { err } = await learned(
      skep,
      'run fake:1 --name a1 --learn --no-check -v ./out:/out --learn-file p/mine.json',
      { files },
    );
    expect(err).toContain('was seen to do this:\n  Not seen: which files it read\n');
    expect(await profileOf(skep, 'p/mine.json')).toMatchObject({ write: [`${skep.cwd}/out:/out`] });
  });

  test('keeps to the private hosts that the profile names, and opens nothing where there is no network', async () => {
    const skep = await commandUnderTest({
      files: { 'p.json': { network: { outbound: { allow_host: ['10.0.0.1'], allow_port: [5432] } } } },
      supervisor: 'asked',
    });
    await learned(skep, 'run fake:1 --name a1 --learn --no-check --permission-profile ./p.json');
    expect(skep.runtime.specOf('a1')?.isolation).toMatchObject({
      allowAll: true,
      hosts: ['10.0.0.1'],
      ports: [],
    });
    await learned(skep, 'run fake:1 --name a2 --learn --no-check --network none');
    expect(skep.runtime.specOf('a2')?.isolation).toMatchObject({ allowAll: false, hosts: [], ports: [] });
  });

  test('is not steered by what a server does', async () => {
    const skep = await commandUnderTest({ supervisor: 'asked' });
    const evil = `/x\u001B[2J\u202E\n${'y'.repeat(300)}`;
    const { err } = await learned(skep, 'run fake:1 --name a1 --learn --no-check', {
      decisions: [decided(`e\u001B[31m\u202E`), decided('*')],
      files: paths({ [evil]: [true, true] }),
    });
    expect(controlsIn(err)).toEqual([]);
    expect(await profileOf(skep)).toMatchObject({
      network: { outbound: { allow_host: [], allow_port: [] } },
    });
  });

  test('proposes what it can, whatever else a server asks for', async () => {
    const skep = await commandUnderTest({ files: FILES, supervisor: 'asked' });
    const note = `${skep.cwd}/notes/today.txt`;
    const asked = Array.from({ length: 490 }, (_one, at): [string, [boolean, boolean]] => [
      `/home/${'\uFFFD'.repeat(4_000)}${at}`,
      [false, false],
    ]);
    const { err } = await learned(skep, 'run fake:1 --name a1 --learn --no-check', {
      files: paths({
        ...Object.fromEntries(asked),
        '/net/evil.example/x': [false, false],
        [note]: [false, false],
      }),
    });
    expect(await profileOf(skep)).toMatchObject({ read: [`${note}:${note}`] });
    expect(err).toContain('all of the paths that it asked for');
  });

  test.each([
    [
      'run fake:1 --name a1 --learn --isolate-network=false',
      'Error: --learn watches what a gateway lets through, so it cannot be used with --isolate-network=false; leave out --isolate-network=false\n',
    ],
    [
      'run fake:1 --name there --learn',
      'Error: "WORK/there.profile.json", where --learn would write the profile that it proposes, is there already; name another with --learn-file, or remove it\n',
    ],
    [
      'run fake:1 --name a1 --learn --network host',
      'Error: network isolation cannot be enforced on the network "host"; leave out --learn, or what gives it another network\n',
    ],
  ])('"%s" is refused', async (line, message) => {
    const skep = await commandUnderTest({ files: { 'there.profile.json': '{}' } });
    expect(await skep.refusal(line)).toBe(message);
  });
});

import { describe, expect, test } from 'vitest';
import { commandUnderTest, controlsIn, type CommandUnderTest } from '../command-under-test.fixture.ts';
import { displayWidth } from '../print/table.ts';
import { catalogueOf, imagePackage } from './catalogue.fixture.ts';

const LONG =
  'Keeps facts, people and everything else that anybody might ever want to find again in one place';

const CATALOGUE = catalogueOf({
  'com.example/alpha': {
    title: 'Alpha',
    description: LONG,
    repository: { url: 'https://git.example/alpha', source: 'git' },
    packages: [
      imagePackage({
        environmentVariables: [
          { name: 'TOKEN', description: 'Token of the service', isRequired: true, isSecret: true },
          { name: 'LEVEL' },
        ],
      }),
    ],
    extension: { tier: 'Official', status: 'active', tags: ['notes', 'search'], tools: ['find', 'keep'] },
  },
  'com.example/beta': {
    description: '日本語の説明',
    remotes: [{ type: 'streamable-http', url: 'https://x.example/mcp' }],
  },
  'org.example/gamma': {
    packages: [
      {
        registryType: 'npm',
        identifier: '@example/gamma',
        version: '1.0.0',
        transport: { type: 'stdio' },
      },
    ],
    remotes: [{ type: 'sse', url: 'https://x.example/sse' }],
  },
  'org.example/nothing': { packages: [] },
});

const example = (): Promise<CommandUnderTest> =>
  commandUnderTest({ catalogue: CATALOGUE, supervisor: 'none' });

describe('skep registry list', () => {
  test.each([60, 80, 100, 135])('fits a terminal of %d columns as far as names allow', async (width) => {
    const skep = await example();
    const lines = (await skep.output('registry list', { terminal: { width } })).trimEnd().split('\n');
    const [head = ''] = lines;
    expect(head.split(/ {2,}/)).toEqual(['NAME', 'TYPE', 'TRANSPORT', 'TIER', 'DESCRIPTION']);
    const room = Math.max(24, width - head.indexOf('DESCRIPTION'));
    for (const line of lines)
      expect(displayWidth(line)).toBeLessThanOrEqual(head.indexOf('DESCRIPTION') + room);
    expect(lines[1]?.slice(head.indexOf('DESCRIPTION'))).toBe(shortened(LONG, room));
  });

  test('counts what takes two columns as two, and cuts no character in half', async () => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({ 'com.example/wide': { description: '👍'.repeat(60) } }),
    });
    const [head = '', row = ''] = (await skep.output('registry list', { terminal: { width: 80 } })).split(
      '\n',
    );
    expect(displayWidth(row)).toBeLessThanOrEqual(80);
    expect(row.slice(head.indexOf('DESCRIPTION'))).toMatch(/^(?:👍)+…$/u);
  });

  test('is the same whatever it is written to', async () => {
    const skep = await example();
    const plain = await skep.output('registry list');
    const terminal = { colorOut: true, colorErr: true, liveOut: true, liveErr: true };
    expect(await skep.output('registry list', { terminal })).toBe(plain);
  });

  test('shows what each can be run from, and how it is spoken to', async () => {
    const skep = await example();
    const rows = (await skep.output('registry list')).trimEnd().split('\n').slice(1);
    expect(rows.map((row) => row.split(/ {2,}/).slice(0, 3))).toEqual([
      ['com.example/alpha', 'oci', 'stdio'],
      ['com.example/beta', 'remote', 'streamable-http'],
      ['org.example/gamma', 'npm,remote', 'stdio'],
      ['org.example/nothing', 'Serves org.example/nothing'],
    ]);
  });

  test('has one shape for scripts', async () => {
    const skep = await example();
    expect(JSON.parse(await skep.output('registry list --format json'))).toEqual([
      {
        name: 'com.example/alpha',
        version: '1.0.0',
        title: 'Alpha',
        description: LONG,
        types: ['oci'],
        transport: 'stdio',
        tier: 'Official',
        status: 'active',
        tags: ['notes', 'search'],
        tools: ['find', 'keep'],
      },
      {
        name: 'com.example/beta',
        version: '1.0.0',
        description: '日本語の説明',
        types: ['remote'],
        transport: 'streamable-http',
        tags: [],
        tools: [],
      },
      {
        name: 'org.example/gamma',
        version: '1.0.0',
        description: 'Serves org.example/gamma',
        types: ['npm', 'remote'],
        transport: 'stdio',
        tags: [],
        tools: [],
      },
      {
        name: 'org.example/nothing',
        version: '1.0.0',
        description: 'Serves org.example/nothing',
        types: [],
        transport: '',
        tags: [],
        tools: [],
      },
    ]);
  });
});

const shortened = (text: string, room: number): string =>
  text.length <= room ? text : `${text.slice(0, room - 1).trimEnd()}…`;

describe('skep search', () => {
  test.each([
    ['alpha', ['com.example/alpha']],
    ['ALPHA', ['com.example/alpha']],
    ['notes', ['com.example/alpha']],
    ['people', ['com.example/alpha']],
    ['example', ['com.example/alpha', 'com.example/beta', 'org.example/gamma', 'org.example/nothing']],
    ['org.example/', ['org.example/gamma', 'org.example/nothing']],
    ['absent', []],
  ])('finds by name, description and tag: %s', async (query, names) => {
    const skep = await example();
    const found = JSON.parse(await skep.output(`search --format json ${query}`)) as readonly {
      name: string;
    }[];
    expect(found.map(({ name }) => name)).toEqual(names);
  });

  test.each([
    ['alpha', 'Found 1 server matching query: alpha\nNAME'],
    ['example', 'Found 4 servers matching query: example\nNAME'],
    ['absent', 'No servers found matching query: absent\n'],
  ])('says how many %s finds', async (query, head) => {
    const skep = await example();
    expect((await skep.output(`search ${query}`)).startsWith(head)).toBe(true);
  });

  test('looks through the built-in catalogue while none is chosen', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const found = JSON.parse(await skep.output('search time --format json')) as readonly { name: string }[];
    expect(found.map(({ name }) => name)).toContain('io.github.modelcontextprotocol/time');
  });
});

describe('skep registry info', () => {
  test('shows a server, what it needs, and how to give it', async () => {
    const skep = await example();
    expect(await skep.output('registry info alpha')).toBe(
      [
        'Name:        com.example/alpha',
        'Title:       Alpha',
        'Version:     1.0.0',
        `Description: ${LONG}`,
        'Repository:  https://git.example/alpha',
        'Runs from:   oci',
        '-e TOKEN:    Token of the service (required, secret)',
        '-e LEVEL:    (optional)',
        '',
      ].join('\n'),
    );
  });

  test('says why one cannot be run', async () => {
    const skep = await example();
    expect(await skep.output('registry info org.example/nothing')).toContain(
      'Not runnable: cannot run "org.example/nothing": it names no package and no remote\n',
    );
  });

  test('gives scripts what the publisher wrote, word for word', async () => {
    const skep = await example();
    const { name, _meta } = JSON.parse(await skep.output('registry info alpha --format json')) as {
      name: unknown;
      _meta: unknown;
    };
    expect(name).toBe('com.example/alpha');
    expect(_meta).toBeDefined();
  });

  test('refuses a name that the catalogue has not', async () => {
    const skep = await example();
    expect(await skep.refusal('registry info absent')).toBe(
      'Error: server "absent" not found in the catalogue; find names with skep search; an image is written like org/image:tag\n',
    );
  });

  test('neither table nor facts let a publisher steer the terminal', async () => {
    const hostile = '\u001B[2J\u001B]0;owned\u0007\u202Etxt.exe\nError: none';
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({
        'com.example/hostile': {
          title: hostile,
          description: hostile,
          packages: [
            imagePackage({ environmentVariables: [{ name: 'A', description: hostile, isRequired: true }] }),
          ],
        },
      }),
    });
    const lines = ['registry list', 'search hostile', 'registry info hostile', 'complete -- run host'];
    for (const line of [...lines, 'registry list --format json', 'registry info hostile --format json']) {
      const out = await skep.output(line);
      expect(controlsIn(out)).toEqual([]);
      expect(out.split('\n')).not.toContain('Error: none');
    }
    expect(controlsIn((await skep.run('run hostile')).err)).toEqual([]);
  });
});

describe('skep config', () => {
  const registry = async (skep: CommandUnderTest): Promise<string> => skep.output('config get-registry');

  test('uses a file from then on, wherever it is called from', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
    expect(await registry(skep)).toBe('built-in catalogue\n');
    expect(await skep.run('config set-registry mine.json')).toEqual({
      status: 0,
      out: '',
      err: 'Servers are now looked up in mine.json\n',
    });
    expect(await registry(skep)).toBe(`${skep.cwd}/mine.json (local file)\n`);
    expect(await skep.output('registry info alpha', { cwd: '/' })).toContain('com.example/alpha');
  });

  test('takes a file as an address, too', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
    await skep.output(`config set-registry file://${skep.cwd}/mine.json`);
    expect(await registry(skep)).toBe(`${skep.cwd}/mine.json (local file)\n`);
  });

  test('goes back to the built-in catalogue', async () => {
    const skep = await example();
    await skep.output('config unset-registry');
    expect(await registry(skep)).toBe('built-in catalogue\n');
  });

  test('names what kind is used, and no password of an address', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    await skep.configure('registry_url: https://me:hunter2@registry.example/list.json\n');
    const shown = await registry(skep);
    expect(shown).toMatch(/registry\.example\/list\.json \(remote file\)\n$/);
    expect(shown).not.toContain('hunter2');
    await skep.configure('registry_api_url: https://registry.example\n');
    expect(await registry(skep)).toBe('https://registry.example (API endpoint)\n');
  });

  test.each([
    [
      'config set-registry ftp://x',
      'invalid address "ftp://x"; give a file, or an http or https address with a host',
    ],
    [
      'config set-registry https://',
      'invalid address "https://"; give a file, or an http or https address with a host',
    ],
    [
      'config set-registry http://registry.example/x.json',
      'plain http is not safe for a catalogue: "http://registry.example/x.json"; use https, or give --allow-private-ip when setting it',
    ],
    [
      'config set-registry https://127.0.0.1:1/x.json',
      'the address of "127.0.0.1" is not public; allow private addresses if the server is meant to be local',
    ],
    [
      'config set-registry absent.json',
      'the catalogue file "WORK/absent.json" cannot be read: ENOENT; check the address with skep config get-registry',
    ],
    [
      'config set-registry bad.json',
      '"WORK/bad.json" is not valid JSON: line 2, column 3; correct the file at the named place',
    ],
    [
      'config set-registry list.json',
      '"WORK/list.json" holds no entries; add at least one server, skill or plugin',
    ],
    ['config set-registry', 'missing argument ADDRESS; run the command with --help to see its arguments'],
    ['config set-registry a b', 'unexpected argument "b"; run the command with --help to see its arguments'],
    ['config get-registry x', 'unexpected argument "x"; run the command with --help to see its arguments'],
    ['config nope', 'unknown command "skep config nope"; see skep config --help'],
  ])('%s is refused, and what was chosen before stays', async (line, message) => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: CATALOGUE,
      files: { 'bad.json': '{"a": 1,\n  oops}', 'list.json': [] },
    });
    expect(await skep.refusal(line)).toBe(`Error: ${message}\n`);
    expect(await registry(skep)).toBe(`${skep.home}/catalogue.json (local file)\n`);
  });

  test('leaves every other line of the file as the person wrote it', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
    await skep.configure('# mine\nca_certificate_path: /ca.pem # for builds\n');
    await skep.output('config set-registry mine.json');
    const text = await skep.read(skep.places.configFile);
    expect(text).toContain('# mine\nca_certificate_path: /ca.pem # for builds\n');
  });

  test('a damaged file is never written over', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
    await skep.configure('registry_url: [\n');
    expect((await skep.run('config set-registry mine.json')).status).toBe(1);
    expect(await skep.read(skep.places.configFile)).toBe('registry_url: [\n');
  });
});

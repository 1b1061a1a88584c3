import { rm } from 'node:fs/promises';
import { join } from 'node:path';
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
    const lines = (await skep.output('registry list', { terminal: { widthOut: width } }))
      .trimEnd()
      .split('\n');
    const [head = ''] = lines;
    expect(head.split(/ {2,}/)).toEqual(
      width < 80 ? ['NAME', 'TYPE', 'DESCRIPTION'] : ['NAME', 'TYPE', 'TRANSPORT', 'TIER', 'DESCRIPTION'],
    );
    for (const line of lines) expect(displayWidth(line)).toBeLessThanOrEqual(width);
    const at = head.indexOf('DESCRIPTION');
    expect(lines[1]?.slice(at)).toBe(shortened(LONG, width - at));
  });

  test('counts what takes two columns as two, and cuts no character in half', async () => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({ 'com.example/wide': { description: '👍'.repeat(60) } }),
    });
    const [head = '', row = ''] = (await skep.output('registry list', { terminal: { widthOut: 80 } })).split(
      '\n',
    );
    expect(displayWidth(row)).toBeLessThanOrEqual(80);
    expect(row.slice(head.indexOf('DESCRIPTION'))).toMatch(/^(?:👍)+…$/u);
  });

  test.each(['registry list', 'search alpha'])('%s cuts nothing in a file', async (line) => {
    const description = `alpha ${'word '.repeat(60)}end`;
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({ 'com.example/alpha': { description } }),
    });
    expect(await skep.output(line)).toContain(description);
    expect(await skep.output(line, { terminal: { widthOut: 80, liveOut: true } })).toContain('…');
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
    ['alpah', ['com.example/alpha']],
    ['notes', ['com.example/alpha']],
    ['people', ['com.example/alpha']],
    ['people facts', ['com.example/alpha']],
    ['com.example/', ['com.example/alpha', 'com.example/beta']],
    ['nothing', ['org.example/nothing']],
    ['absent', []],
  ])('finds by name, description and tag, and forgives typos: %s', async (query, names) => {
    const skep = await example();
    const found = JSON.parse(await skep.output(`search --format json ${query}`)) as readonly {
      name: string;
    }[];
    expect(found.map(({ name }) => name)).toEqual(names);
  });

  test.each([
    ['alpha', 'Found 1 server matching query: alpha\nNAME'],
    ['com.example', 'Found 2 servers matching query: com.example\nNAME'],
    ['absent', 'No servers found matching query: absent\n'],
  ])('says how many %s finds', async (query, head) => {
    const skep = await example();
    expect((await skep.output(`search ${query}`)).startsWith(head)).toBe(true);
  });

  test('shows what runs here and what has to be given', async () => {
    const skep = await example();
    const [, head = '', ...lines] = (await skep.output('search .example/')).trimEnd().split('\n');
    expect(head.split(/ {2,}/)).toEqual(['NAME', 'RUNS HERE', 'NEEDS', 'DESCRIPTION']);
    expect(lines.map((line) => line.split(/ {2,}/).slice(0, 3))).toEqual([
      ['org.example/gamma', 'yes', 'Serves org.example/gamma'],
      ['org.example/nothing', 'no', 'Serves org.example/nothing'],
      ['com.example/alpha', 'yes', 'a secret'],
      ['com.example/beta', 'yes', '日本語の説明'],
    ]);
    const json = JSON.parse(await skep.output('search alpha --format json')) as readonly object[];
    expect(json).toMatchObject([{ runsHere: 'yes', needs: [{ name: 'TOKEN', secret: true }] }]);
  });

  test('leaves out what does not run here, where that is wanted, and says so where nothing is left', async () => {
    const skep = await example();
    expect(await skep.output('search --runnable .example/')).toMatch(/^Found 3 servers/);
    expect(await skep.run('search --runnable nothing')).toEqual({
      status: 0,
      out: 'No servers found matching query: nothing\n',
      err: '1 server matches, but does not run here; see without --runnable why\n',
    });
  });

  test('without a hit says how to go on', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    expect((await skep.run('search xyzzy')).err).toMatch(
      /^The built-in catalogue has \d+ servers; skep config set-registry ADDRESS chooses a larger one\n$/,
    );
    const other = await example();
    expect((await other.run('search xyzzy')).err).toBe(
      `Looked in ${other.home}/catalogue.json; try fewer or other words, or another catalogue with skep config set-registry ADDRESS\n`,
    );
  });

  test('looks through the built-in catalogue while none is chosen', async () => {
    const skep = await commandUnderTest({ supervisor: 'none' });
    const found = JSON.parse(await skep.output('search time --format json')) as readonly { name: string }[];
    expect(found[0]?.name).toBe('io.github.modelcontextprotocol/time');
  });
});

describe.each(['info', 'registry info'])('skep %s', (info) => {
  test('shows a server, what it needs, and how to give it', async () => {
    const skep = await example();
    expect(await skep.output(`${info} alpha`)).toBe(
      [
        'Name:        com.example/alpha',
        'Title:       Alpha',
        'Version:     1.0.0',
        `Description: ${LONG}`,
        'Status:      Official, active',
        'Tags:        notes, search',
        'Repository:  https://git.example/alpha',
        'Runs from:   image fake:1',
        'Speaks:      stdio',
        '-e TOKEN:    Token of the service (required, secret)',
        '-e LEVEL:    (optional)',
        'Tools:       2: find, keep',
        'Runs here:   yes',
        'Run it:      skep run alpha',
        '',
      ].join('\n'),
    );
  });

  test('shows arguments, weights of tools, hosts, mounts and licence', async () => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({
        'com.example/rich': {
          packages: [
            imagePackage({
              packageArguments: [
                { type: 'positional', valueHint: 'directory; rm', isRequired: true, description: 'Where' },
                { type: 'named', name: '--level', isRequired: true },
              ],
            }),
          ],
          extension: {
            tools: ['find'],
            tool_definitions: [
              { name: 'keep', description: 'x'.repeat(360), inputSchema: { type: 'object' } },
            ],
            custom_metadata: { license: 'MIT' },
            permissions: {
              network: { outbound: { allow_host: ['a.example', 'b.example'], allow_port: [443] } },
              read: ['/etc/ssl'],
            },
          },
        },
      }),
    });
    const out = await skep.output(`${info} rich`);
    for (const line of [
      /^Licence: +MIT$/m,
      /^Argument directory; rm: +Where \(required\)$/m,
      /^Tools: +2, ~1\d\d tokens: find, keep \(1\d\d\)$/m,
      /^Hosts: +a\.example, b\.example$/m,
      /^Ports: +443$/m,
      /^Isolated: +with --isolate-network it reaches a\.example:443, b\.example:443$/m,
      /^Reads: +\/etc\/ssl$/m,
      /^Run it: +skep run rich -- DIRECTORY_RM --level LEVEL$/m,
    ])
      expect(out).toMatch(line);
  });

  test('says why one cannot be run', async () => {
    const skep = await example();
    expect(await skep.output(`${info} org.example/nothing`)).toContain(
      'Not runnable: cannot run "org.example/nothing": it names no package and no remote\n',
    );
    expect(await skep.output(`${info} beta`)).toContain('Runs here:   yes\nRun it:      skep run beta\n');
  });

  test('gives scripts what the publisher wrote, word for word', async () => {
    const skep = await example();
    const { name, _meta } = JSON.parse(await skep.output(`${info} alpha --format json`)) as {
      name: unknown;
      _meta: unknown;
    };
    expect(name).toBe('com.example/alpha');
    expect(_meta).toBeDefined();
  });

  test('refuses a name that the catalogue has not, and names the nearest', async () => {
    const skep = await example();
    expect(await skep.refusal(`${info} absent`)).toBe(
      'Error: server "absent" not found in the catalogue; find names with skep search; an image is written like org/image:tag\n',
    );
    expect(await skep.refusal(`${info} gama`)).toBe(
      'Error: server "gama" not found in the catalogue; did you mean org.example/gamma?\n',
    );
  });

  test('asks which of several servers with a short name is meant, or lists them', async () => {
    const skep = await commandUnderTest({
      supervisor: 'none',
      catalogue: catalogueOf({ 'a.example/twin': {}, 'b.example/twin': {} }),
    });
    expect(await skep.refusal(`${info} twin`)).toBe(
      'Error: more than one server matches "twin": a.example/twin, b.example/twin; use the full name\n',
    );
    const answers = { 'Which "twin"?': 'b.example/twin' };
    const out = await skep.output(`${info} twin`, { answers });
    expect(out).toContain('b.example/twin');
    expect(out).toContain('skep run b.example/twin\n');
  });
});

test('no text of a catalogue lets a publisher steer the terminal, or fills it', async () => {
  const hostile = '\u001B[2J\u001B]0;owned\u0007\u202Etxt.exe\nError: none';
  const long = `${hostile}${'x'.repeat(1e6)}`;
  const skep = await commandUnderTest({
    supervisor: 'none',
    catalogue: catalogueOf({
      'com.example/hostile': {
        title: hostile,
        description: long,
        repository: { url: hostile },
        packages: [
          imagePackage({
            environmentVariables: [{ name: 'A', description: long, isRequired: true, choices: [hostile] }],
            packageArguments: [{ type: 'positional', valueHint: `$(${hostile})`, isRequired: true }],
          }),
        ],
        extension: { tags: [hostile], tools: [hostile], license: hostile, tier: hostile },
      },
      'com.example/misnamed': {
        description: hostile,
        packages: [imagePackage({ environmentVariables: [{ name: hostile, isRequired: true }] })],
      },
    }),
  });
  const lines = ['registry list', 'search hostile', 'info hostile', 'info misnamed', 'complete -- run host'];
  for (const line of [
    ...lines,
    'registry list --format json',
    'info hostile --format json',
    `search ${hostile}`,
  ]) {
    const { out, err } = await skep.run(line);
    expect(controlsIn(out + err)).toEqual([]);
    expect(out.split('\n')).not.toContain('Error: none');
  }
  expect((await skep.output('info hostile')).length).toBeLessThan(20_000);
  expect(await skep.output('info hostile')).toMatch(/skep run hostile -- [A-Z0-9_]+\n/);
  expect(controlsIn((await skep.run('run hostile')).err)).toEqual([]);
  const search = await skep.output('search hostile', { terminal: { widthOut: 80 } });
  for (const line of search.split('\n')) expect(displayWidth(line)).toBeLessThanOrEqual(80);
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

  test('warns of a file that cannot be read any more', async () => {
    const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
    await skep.output('config set-registry mine.json');
    expect((await skep.run('config get-registry')).err).toBe('');
    await rm(join(skep.cwd, 'mine.json'));
    expect(await skep.run('config get-registry')).toEqual({
      status: 0,
      out: `${skep.cwd}/mine.json (local file)\n`,
      err: `Warning: the catalogue file "${skep.cwd}/mine.json" cannot be read: ENOENT\n`,
    });
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
    [['api', 'url', 'path'], 'https://api.example (API endpoint)'],
    [['path', 'url'], 'https://url.example/list.json (remote file)'],
    [['path'], '/list.json (local file)'],
    [[], 'built-in catalogue'],
  ] as const)(
    'of several that the file names (%j) the API counts before an address, that before a file',
    async (named, used) => {
      const lines = {
        api: 'registry_api_url: https://api.example',
        url: 'registry_url: https://url.example/list.json',
        path: 'local_registry_path: /list.json',
      };
      const skep = await commandUnderTest({ supervisor: 'none', files: { 'mine.json': CATALOGUE } });
      await skep.configure(named.map((one) => `${lines[one]}\n`).join(''));
      expect(await registry(skep)).toBe(`${used}\n`);
      await skep.output('config set-registry mine.json');
      expect(await skep.read(skep.places.configFile)).toBe(`local_registry_path: ${skep.cwd}/mine.json\n`);
    },
  );

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
      'plain http is not safe for a catalogue: "http://registry.example/x.json"; use https, or give --allow-private-ip',
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

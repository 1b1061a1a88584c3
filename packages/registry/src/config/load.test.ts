import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { type Loaded, loadConfig } from './load.ts';
import { KIND_LIST } from '../sources/source-body.ts';
import { DEFAULT_LIMITS } from '../shape/limits.ts';
import { withAliases } from './environment.ts';
import { overridesFrom, unreadVariables } from './overrides.ts';

const VALID = `sources:
  - name: files
    file: { path: catalog.json }
    syncPolicy: { interval: 1h30m }
registries:
  - name: all
    sources: [files]
auth: { mode: anonymous }
`;

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

async function load(text: string, env: Readonly<Record<string, string>> = {}): Promise<Loaded> {
  await writeFile(join(directory, 'c.yaml'), text);
  return loadConfig({
    path: 'c.yaml',
    workingDirectory: directory,
    defaultStorePath: '/data/registry.db',
    overrides: overridesFrom(withAliases(env)),
  });
}

/** The problems of VALID with one text in it replaced. */
async function problemsWith(search: string, replacement: string): Promise<readonly string[]> {
  expect(VALID).toContain(search);
  const loaded = await load(VALID.replace(search, replacement));
  return 'problems' in loaded ? loaded.problems : [];
}

const INTERVAL = '    syncPolicy: { interval: 1h30m }\n';

describe('loadConfig', () => {
  test('resolves paths from the configuration file and durations to milliseconds', async () => {
    expect(await load(`${VALID}storage: { path: state/r.db }`)).toEqual({
      config: {
        path: join(directory, 'c.yaml'),
        sources: [
          {
            name: 'files',
            kind: 'file',
            config: JSON.stringify({ path: join(directory, 'catalog.json') }),
            format: null,
            filter: null,
            interval: 5_400_000,
            claims: '',
          },
        ],
        registries: [{ name: 'all', sources: ['files'], claims: '' }],
        limits: DEFAULT_LIMITS,
        telemetry: 'off',
        audit: 'off',
        auth: { mode: 'anonymous', unusedRoles: {}, allowedHosts: [] },
        storage: { path: join(directory, 'state/r.db') },
      },
    });
  });

  test('takes as many claims as its own limits allow, and says where there are more', async () => {
    const claims = `{ org: [${Array.from({ length: 300 }, (_, index) => `"${index}"`).join()}] }`;
    const text = (most: number): string => `sources: [{ name: one, managed: {}, claims: ${claims} }]
registries: [{ name: all, sources: [one], claims: ${claims} }]
auth: { mode: anonymous, authz: { roles: { superAdmin: [${claims}] } } }
limits: { claims: { maxValues: ${most} } }
`;
    const claimed = { claims: expect.stringContaining('"299"') };
    expect(await load(text(300))).toMatchObject({
      config: {
        sources: [claimed],
        registries: [claimed],
        auth: { unusedRoles: { superAdmin: [{ org: expect.arrayContaining(['299']) }] } },
      },
    });
    expect(await load(text(299))).toEqual({
      problems: [
        expect.stringMatching(/^c\.yaml:1:\d+: sources\[0\]\.claims\.org: .* at most 299 are allowed$/),
        expect.stringMatching(/^c\.yaml:2:\d+: registries\[0\]\.claims\.org: .* at most 299 are allowed$/),
        expect.stringMatching(/^c\.yaml:3:\d+: auth\.authz\.roles\.superAdmin\[0\]\.org: /),
      ],
    });
  });

  test.each([':memory:', '/var/lib/r.db'])('keeps the storage path %s as it is', async (path) => {
    expect(await load(`${VALID}storage: { path: "${path}" }`)).toMatchObject({
      config: { storage: { path } },
    });
  });

  test.each<[search: string, replacement: string, ...problems: string[]]>([
    [
      'sources:\n',
      'sourcez:\n',
      'c.yaml:1:1: sources: is required (a list)',
      'c.yaml:1:1: sourcez: unknown key "sourcez"; did you mean "sources"?',
      'c.yaml:7:15: registries[0].sources[0]: references unknown source "files"',
    ],
    [
      'name: files',
      'name: Files',
      'c.yaml:2:11: sources[0].name: must be 1 to 63 lower-case letters, digits and inner hyphens, not "Files"',
      'c.yaml:7:15: registries[0].sources[0]: references unknown source "files"',
    ],
    [
      '    file: { path: catalog.json }\n',
      '',
      `c.yaml:2:5: sources[0]: one of ${KIND_LIST} configuration must be specified`,
    ],
    ['{ path: catalog.json }', '{}', 'c.yaml:3:11: sources[0].file: file.path or file.url is required'],
    [
      '{ path: catalog.json }',
      '{ pth: catalog.json }',
      'c.yaml:3:11: sources[0].file: file.path or file.url is required',
      'c.yaml:3:13: sources[0].file.pth: unknown key "pth"; did you mean "path"?',
    ],
    [
      '{ path: catalog.json }',
      '{ path: 5 }',
      'c.yaml:3:19: sources[0].file.path: must be a text, not 5; write it in quotes',
    ],
    [INTERVAL, '', 'c.yaml:2:5: sources[0]: syncPolicy.interval is required'],
    [
      '1h30m',
      'soon',
      'c.yaml:4:29: sources[0].syncPolicy.interval: must be a positive duration such as "5m", not "soon"',
    ],
    [
      '1h30m',
      '0s',
      'c.yaml:4:29: sources[0].syncPolicy.interval: must be a positive duration such as "5m", not "0s"',
    ],
    [
      INTERVAL,
      `${INTERVAL}    format: yaml\n`,
      'c.yaml:5:13: sources[0].format: must be "toolhive" or "upstream", not "yaml"',
    ],
    ['sources: [files]', 'sources: []', 'c.yaml:7:14: registries[0].sources: must name at least one source'],
    [
      'sources: [files]',
      'sources: [files, other, files]',
      'c.yaml:7:22: registries[0].sources[1]: references unknown source "other"',
      'c.yaml:7:29: registries[0].sources[2]: names the source "files" twice',
    ],
    [
      'name: all',
      'name: health',
      'c.yaml:6:11: registries[0].name: is a reserved word of the HTTP interface',
    ],
    [
      'sources: [files]',
      'sources: [files]\n  - name: all\n    sources: [files]',
      'c.yaml:8:11: registries[1].name: duplicate registry name "all"',
    ],
    [
      'registries:\n  - name: all\n    sources: [files]\n',
      'registries: []\n',
      'c.yaml:5:13: registries: at least one registry must be configured',
    ],
    [
      'auth: { mode: anonymous }',
      '',
      'c.yaml:1:1: auth.oauth: auth.oauth is required when auth.mode is oauth (the default); set auth.mode to anonymous to let everyone read everything',
    ],
    ['mode: anonymous', 'mode: open', 'c.yaml:8:15: auth.mode: must be "anonymous" or "oauth", not "open"'],
    [
      'auth:',
      'database: { host: db, port: 0, database: d, user: u }\nauth:',
      'c.yaml:8:29: database.port: must be a whole number from 1 to 65535',
    ],
    [
      'auth:',
      'telemetry: { metrics: on }\nauth:',
      'c.yaml:8:23: telemetry.metrics: must be a map of members, not "on"',
    ],
    ['auth:', 'audit:\nauth:', 'c.yaml:8:7: audit: must be a map of members, not empty'],
    ['auth:', 'auth: { mode: oauth }\nauth:', 'c.yaml:9:1: Map keys must be unique'],
    ['name: all', 'name: !!js/function all', 'c.yaml:6:11: Unresolved tag: tag:yaml.org,2002:js/function'],
    [
      'sources: [files]',
      'sources: [files',
      'c.yaml:8:1: Flow sequence in block collection must be sufficiently indented and end with a ]',
    ],
  ])('reports the line and column for %j written as %j', async (search, replacement, ...problems) => {
    expect(await problemsWith(search, replacement)).toEqual(problems);
  });

  test.each([
    ['', 'c.yaml:1:1: must be a map of members, not empty'],
    ['just text', 'c.yaml:1:1: must be a map of members, not "just text"'],
    ['[1]', 'c.yaml:1:1: must be a map of members, not a list'],
  ])('refuses a document that is no map: %j', async (text, problem) => {
    const loaded = await load(text);
    expect('problems' in loaded && loaded.problems[0]).toBe(problem);
  });

  test('refuses an alias bomb instead of expanding it', async () => {
    const layers = Array.from({ length: 9 }, (_, n) => `l${n + 1}: &l${n + 1} [${`*l${n},`.repeat(9)}]`);
    const loaded = await load(['l0: &l0 [x,x]', ...layers].join('\n'));
    expect(loaded).toEqual({ problems: [expect.stringContaining('Excessive alias count')] });
  });

  test('reports problems of every part of the file together, in the order of the lines', async () => {
    const loaded = await load(
      'sources:\n  - name: A\nregistries:\n  - name: x\n    sources: [b]\n    colour: red\naudit: { colour: red }\n',
    );
    const lines = 'problems' in loaded ? loaded.problems.map((problem) => problem.split(': ')[1]) : [];
    expect(lines).toEqual([
      'auth.oauth',
      'sources[0]',
      'sources[0].name',
      'registries[0].sources[0]',
      'registries[0].colour',
      'audit.colour',
    ]);
  });

  test('does not follow a relative path out of the working directory', async () => {
    const attempt = loadConfig({
      path: '../c.yaml',
      workingDirectory: directory,
      defaultStorePath: '/x',
      overrides: [],
    });
    await expect(attempt).rejects.toMatchObject({ code: 'config/unreadable' });
  });

  test('names a file that does not exist', async () => {
    const attempt = loadConfig({
      path: 'none.yaml',
      workingDirectory: directory,
      defaultStorePath: '/x',
      overrides: [],
    });
    await expect(attempt).rejects.toMatchObject({ code: 'file/not-found' });
  });
});

describe('variables', () => {
  test('take the place of what the file says, ours before the THV_ name', async () => {
    const env = { THV_REGISTRY_STORAGE_PATH: '/thv.db', SKEP_REGISTRY_STORAGE_PATH: '/skep.db' };
    expect(await load(VALID, env)).toMatchObject({ config: { storage: { path: '/skep.db' } } });
    expect(
      await load(VALID, { THV_REGISTRY_STORAGE_PATH: '/thv.db', SKEP_REGISTRY_STORAGE_PATH: '' }),
    ).toMatchObject({
      config: { storage: { path: '/thv.db' } },
    });
  });

  test('are named where their value is wrong', async () => {
    expect(await load(VALID, { SKEP_REGISTRY_AUTH_MODE: 'open' })).toEqual({
      problems: ['SKEP_REGISTRY_AUTH_MODE: auth.mode: must be "anonymous" or "oauth", not "open"'],
    });
  });

  test('that nothing reads are reported, but not those an orchestrator sets by itself', () => {
    expect(
      unreadVariables({
        SKEP_REGISTRY_STORAGE_PAHT: 'x',
        SKEP_REGISTRY_LOG_LEVEL: 'debug',
        SKEP_REGISTRY_PORT_8080_TCP_ADDR: '10.0.0.1',
        SKEP_REGISTRY_SERVICE_HOST: '10.0.0.1',
        HOME: '/home/x',
      }),
    ).toEqual(['SKEP_REGISTRY_STORAGE_PAHT']);
  });
});

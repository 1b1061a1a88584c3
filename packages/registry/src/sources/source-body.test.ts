import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { NamedSource } from '../store/rows.ts';
import { loadConfig } from '../config/load.ts';
import { CLAIM_LIMITS } from '@skep/auth/claims/claims.ts';
import { KIND_LIST, parseSourceBody } from './source-body.ts';

let directory: string;
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'skep-config-'));
});
afterEach(() => rm(directory, { recursive: true }));

/** A configuration with these sources, one per line. */
async function load(sources: readonly string[]) {
  const text = `sources:
${sources.map((source) => `  - ${source}`).join('\n')}
registries: [{ name: all, sources: [one] }]
auth: { mode: anonymous }
`;
  await writeFile(join(directory, 'c.yaml'), text);
  return loadConfig({
    path: 'c.yaml',
    workingDirectory: directory,
    defaultStorePath: '/data/registry.db',
    overrides: [],
  });
}

async function sourcesOf(...sources: readonly string[]): Promise<readonly NamedSource[]> {
  const loaded = await load(sources);
  if ('problems' in loaded) throw new Error(loaded.problems.join('\n'));
  return loaded.config.sources;
}

async function problemsOf(...sources: readonly string[]): Promise<readonly string[]> {
  const loaded = await load(sources);
  return 'problems' in loaded ? loaded.problems.map((line) => line.replace(/^c\.yaml:/u, '')) : [];
}

const EVERY = 'syncPolicy: { interval: 30m }';
const REPO = 'https://git.example/catalog.git';

describe('sources of a configuration', () => {
  test('become what the store keeps, whatever their kind', async () => {
    expect(
      await sourcesOf(
        `{ name: one, format: toolhive, git: { repository: "${REPO}", branch: main }, ${EVERY}, claims: { Org: acme } }`,
        `{ name: two, api: { endpoint: "https://r.example/", timeout: 5m }, ${EVERY}, format: upstream }`,
        `{ name: three, file: { path: data/c.json }, ${EVERY}, filter: { tags: { include: [stable] } } }`,
        '{ name: four, managed: {}, syncPolicy: { interval: 1h }, filter: {}, claims: { a: [c, b, b] } }',
        '{ name: five, kubernetes: { namespaces: [prod] } }',
        '{ name: six, kubernetes: { kinds: [Service], kubeconfig: kube.yaml, context: test } }',
      ),
    ).toEqual([
      {
        name: 'one',
        kind: 'git',
        config: `{"repository":"${REPO}","branch":"main"}`,
        format: 'toolhive',
        filter: null,
        interval: 1_800_000,
        claims: '{"Org":["acme"]}',
      },
      {
        name: 'two',
        kind: 'api',
        config: '{"endpoint":"https://r.example/","timeout":"5m"}',
        format: 'upstream',
        filter: null,
        interval: 1_800_000,
        claims: '',
      },
      {
        name: 'three',
        kind: 'file',
        config: JSON.stringify({ path: join(directory, 'data/c.json') }),
        format: null,
        filter: '{"tags":{"include":["stable"]}}',
        interval: 1_800_000,
        claims: '',
      },
      {
        name: 'four',
        kind: 'managed',
        config: '{}',
        format: null,
        filter: null,
        interval: null,
        claims: '{"a":["b","c"]}',
      },
      {
        name: 'five',
        kind: 'kubernetes',
        config: '{"namespaces":["prod"]}',
        format: null,
        filter: null,
        interval: null,
        claims: '',
      },
      {
        name: 'six',
        kind: 'kubernetes',
        config: JSON.stringify({
          kinds: ['Service'],
          kubeconfig: join(directory, 'kube.yaml'),
          context: 'test',
        }),
        format: null,
        filter: null,
        interval: null,
        claims: '',
      },
    ]);
  });

  test.each<[string, ...problems: string[]]>([
    ['{ name: one }', `2:5: sources[0]: one of ${KIND_LIST} configuration must be specified`],
    [
      `{ name: one, managed: {}, git: { repository: "${REPO}" } }`,
      `2:5: sources[0]: only one of ${KIND_LIST} configuration may be specified, found git and managed`,
    ],
    [`{ name: one, git: { repository: "${REPO}" } }`, '2:5: sources[0]: syncPolicy.interval is required'],
    [`{ name: one, git: {}, ${EVERY} }`, '2:23: sources[0].git.repository: is required (a text)'],
    [
      `{ name: one, git: { repository: "${REPO}", path: ../../x }, ${EVERY} }`,
      '2:78: sources[0].git.path: "../../x" is not a path of a file in a repository',
    ],
    [
      `{ name: one, git: { repository: "file:///etc" }, ${EVERY} }`,
      '2:37: sources[0].git.repository: "file:///etc" is not an http, https or ssh address',
    ],
    [
      `{ name: one, git: { repository: "${REPO}", tag: v1, branch: main }, ${EVERY} }`,
      '2:23: sources[0].git: only one of branch, tag and commit may be given, not branch and tag',
    ],
    [
      `{ name: one, git: { repository: "${REPO}", commit: 1a2b3c4 }, ${EVERY} }`,
      '2:23: sources[0].git: commit "1a2b3c4" is abbreviated; give all 40 digits, which "git rev-parse 1a2b3c4" prints',
    ],
    [
      `{ name: one, git: { repository: "${REPO}", commit: 1234567 }, ${EVERY} }`,
      '2:80: sources[0].git.commit: must be a text, not 1234567; write it in quotes',
    ],
    [
      `{ name: one, git: { repository: "${REPO}", auth: { username: u, passwordFile: p } }, ${EVERY} }`,
      '2:107: sources[0].git.auth.passwordFile: must be an absolute path',
    ],
    [`{ name: one, api: {}, ${EVERY} }`, '2:23: sources[0].api.endpoint: is required (a text)'],
    [
      `{ name: one, api: { endpoint: "ftp://x.example" }, ${EVERY} }`,
      '2:35: sources[0].api.endpoint: must use http or https scheme',
    ],
    [
      `{ name: one, api: { endpoint: "https://x.example", timeout: 6m }, ${EVERY} }`,
      '2:65: sources[0].api.timeout: must not exceed 5m0s',
    ],
    [
      `{ name: one, format: toolhive, api: { endpoint: "https://x.example" }, ${EVERY} }`,
      '2:26: sources[0].format: must be either empty or "upstream" with an api source, not "toolhive"',
    ],
    [`{ name: one, file: {}, ${EVERY} }`, '2:24: sources[0].file: file.path or file.url is required'],
    [
      `{ name: one, file: { path: a, url: "https://x.example/c" }, ${EVERY} }`,
      '2:24: sources[0].file: file.path and file.url are mutually exclusive',
    ],
    [
      '{ name: one, file: { data: "{}" } }',
      '2:32: sources[0].file.data: file.data is for sources made through the API; write the data into a file and name its path',
    ],
    [
      `{ name: one, file: { path: a, timeout: 5s }, ${EVERY} }`,
      '2:44: sources[0].file.timeout: is only for file.url',
    ],
    [
      `{ name: one, file: { path: a }, syncPolicy: { interval: -5m } }`,
      '2:61: sources[0].syncPolicy.interval: must be a positive duration such as "5m", not "-5m"',
    ],
    [
      `{ name: one, file: { path: a }, ${EVERY}, filter: { names: { include: ["a[", "b"] } } }`,
      '2:97: sources[0].filter.names.include[0]: the pattern "a[" has a "[" without "]"',
    ],
    [
      `{ name: one, file: { path: a }, ${EVERY}, filter: { name: {} } }`,
      '2:78: sources[0].filter.name: unknown key "name"; did you mean "names"?',
    ],
    [
      `{ name: one, managed: {}, claims: { org: 5, team: [a, 1] } }`,
      '2:46: sources[0].claims.org: claim "org": value must be a string or array of strings',
      '2:55: sources[0].claims.team: claim "team": array element [1] must be a string',
    ],
    [
      '{ name: one, kubernetes: { namespaces: [Prod], kinds: [Pod] } }',
      '2:45: sources[0].kubernetes.namespaces[0]: must be 1 to 63 lower-case letters, digits and inner hyphens, not "Prod"',
      '2:60: sources[0].kubernetes.kinds[0]: must be "MCPServer" or "VirtualMCPServer" or "MCPRemoteProxy" or "Service" or "Deployment", not "Pod"',
    ],
    [
      '{ name: one, kubernetes: { namespaces: prod } }',
      '2:44: sources[0].kubernetes.namespaces: must be a list, not "prod"',
    ],
  ])('reports what is wrong with %s', async (source, ...problems) => {
    expect(await problemsOf(source)).toEqual(problems);
  });

  test.each([
    [Array.from({ length: 1_001 }, (_, index) => `a/${index}`), 'more than 1000 patterns and tags'],
    [Array.from({ length: 100 }, () => 'x'.repeat(1_000)), 'more than 65536 characters'],
  ])('refuses a filter that takes long to compare with each entry', async (exclude, problem) => {
    const filter = JSON.stringify({ names: { include: ['*'] }, tags: { exclude } });
    const [first = ''] = await problemsOf(`{ name: one, file: { path: a }, ${EVERY}, filter: ${filter} }`);
    expect(first).toContain(`sources[0].filter: must not have ${problem}`);
  });

  test('names every managed source after the first, and the problems of all sources together', async () => {
    expect(
      await problemsOf('{ name: one, managed: {} }', '{ name: two, managed: {} }', '{ name: x }'),
    ).toEqual([
      '3:27: sources[1].managed: at most one managed source is allowed, found 2',
      `4:5: sources[2]: one of ${KIND_LIST} configuration must be specified`,
    ]);
  });
});

describe('the body of a request that makes a source', () => {
  test('is read like a source of the file, and may hold its data', () => {
    expect(
      parseSourceBody({ file: { data: '{"servers":[]}' }, claims: { org: 'acme' } }, CLAIM_LIMITS),
    ).toEqual({
      kind: 'file',
      config: JSON.stringify({ data: '{"servers":[]}' }),
      format: null,
      filter: null,
      interval: null,
      claims: '{"org":["acme"]}',
    });
  });

  test('may say that it signs in with nothing', () => {
    const git = { repository: 'https://g.test/r', auth: {} };
    expect(parseSourceBody({ git, syncPolicy: { interval: '1m' } }, CLAIM_LIMITS).kind).toBe('git');
  });

  test.each<[unknown, string]>([
    [[], 'must be a map of members, not a list'],
    [{ file: { path: 'c.json' }, syncPolicy: { interval: '1m' } }, 'file.path: must be an absolute path'],
    [{ managed: {}, name: 'x' }, 'name: unknown key "name"'],
    [{ file: {} }, 'file.path, file.url or file.data is required'],
    [
      { git: { repository: 'git@g.test:r', auth: { sshKeyFile: 'key' } }, syncPolicy: { interval: '1m' } },
      'git.auth.sshKeyFile: must be an absolute path',
    ],
    [
      {
        git: { repository: 'git@g.test:r', auth: { sshKeyFile: '/k -o x' } },
        syncPolicy: { interval: '1m' },
      },
      'git.auth.sshKeyFile: may have letters, digits and ./_@+=:- only',
    ],
    [
      { git: { repository: 'https://g.test/r', auth: { username: 'u' } }, syncPolicy: { interval: '1m' } },
      'git.auth: takes username and passwordFile together',
    ],
  ])('is refused with everything that is wrong: %j', (body, message) => {
    expect(() => parseSourceBody(body, CLAIM_LIMITS)).toThrowError(
      expect.objectContaining({ code: 'config/invalid' }),
    );
    expect(() => parseSourceBody(body, CLAIM_LIMITS)).toThrowError(message);
  });
});

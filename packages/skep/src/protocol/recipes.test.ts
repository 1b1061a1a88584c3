import { describe, expect, test } from 'vitest';
import { buildRecipe, type RecipeOptions, type Scheme } from './build-recipe.ts';
import { chooseBin } from './choose-bin.ts';
import { GO } from './go.ts';
import { imageTag } from './image-tag.ts';
import { NPX } from './npx.ts';
import { UVX } from './uvx.ts';

const options: RecipeOptions = {
  name: '@scope/server',
  version: '1.2.3',
  baseImage: 'node:24-alpine',
  addPackages: ['jq'],
  caCert: 'PEM',
  sources: { registry: 'https://packages.test/npm/' },
  buildId: 'build-7',
};

const finalStage = (dockerfile: string) => dockerfile.slice(dockerfile.lastIndexOf('\nFROM '));

describe.each([
  ['npx', NPX, '["npm","install","--save-exact","--omit=dev","--","@scope/server@1.2.3"]'],
  ['uvx', UVX, '["/bin/sh","/skep/fetch.sh","--","@scope/server==1.2.3"]'],
  ['go', GO, '["/bin/sh","/skep/fetch.sh","install","@scope/server@1.2.3"]'],
])('%s recipe', (_scheme, scheme, install) => {
  const recipe = (given: RecipeOptions) => buildRecipe(scheme, given);
  const { files } = recipe(options);
  const dockerfile = files['Dockerfile'] ?? '';

  test('passes the package as one argument in exec form', () => {
    expect(dockerfile).toContain(`RUN ${install}`);
  });

  test('has no RUN in shell form', () => {
    expect(
      dockerfile.split('\n').filter((line) => line.startsWith('RUN') && !line.startsWith('RUN [')),
    ).toEqual([]);
  });

  test('keeps the registry out of the final stage, and the certificate where no package is added with it', () => {
    expect(files['skep/ca.crt']).toBe('PEM');
    expect(finalStage(dockerfile)).not.toMatch(/packages\.test|CERT/);
    const plain = recipe({ ...options, addPackages: [] }).files['Dockerfile'] ?? '';
    expect(finalStage(plain)).not.toMatch(/ca\.crt|packages\.test|CERT/);
    expect(recipe({ ...options, caCert: undefined as never }).files['Dockerfile']).not.toContain('ca.crt');
  });

  test('takes nothing of the machine into the build but what is named, and no login', () => {
    const known =
      /^(?:Dockerfile|skep\/(?:packages\.sh|home\/\.keep|fetch\.sh|link-entry\.(?:mjs|py|sh)|npmrc|ca\.crt)|build\/package\.json)$/;
    expect(Object.keys(files).filter((name) => !known.test(name))).toEqual([]);
    expect(
      dockerfile.split('\n').filter((line) => /^(?:ADD|COPY)/.test(line) && !line.includes('--from=')),
    ).toEqual(expect.not.arrayContaining([expect.stringMatching(/ \.\.?(?: |\/)|https?:/)]));
  });

  test('says variables in the final stage alone, and none of a dollar sign', () => {
    const text = recipe({ ...options, env: { TZ: 'UTC', A_B: "it's $x #1" } }).files['Dockerfile'] ?? '';
    expect(finalStage(text)).toContain('\nENV TZ="UTC"\nENV A_B="it\'s \\$x #1"\n');
    expect(text.split('ENV TZ')).toHaveLength(2);
  });

  test('runs as a numeric user with an exec-form entry point', () => {
    expect(finalStage(dockerfile)).toContain('USER 1000:1000\nENTRYPOINT ["/app/server/run"]');
  });

  test('labels both stages, installs the added packages in both and lets only the default ones fail', () => {
    expect(dockerfile.match(/^LABEL skep\.managed=true skep\.build=build-7$/gm)).toHaveLength(2);
    expect(dockerfile.match(/"required","jq"/g)).toHaveLength(2);
    expect(dockerfile.match(/"optional"/g)).toHaveLength(2);
  });

  test.each([
    { baseImage: 'node\nRUN id' },
    { baseImage: '--platform=x' },
    { addPackages: ['git; id'] },
    { addPackages: ['--root'] },
    { sources: { registry: 'https://packages.test/\nRUN id' } },
    { sources: { registry: 'https://packages.test/" X=1' } },
    { sources: { 'registry\nRUN id': 'https://packages.test/' } },
  ])('refuses %j', (bad) => {
    expect(() => recipe({ ...options, ...bad })).toThrow(
      expect.objectContaining({ code: 'runtime/invalid-workload' }),
    );
  });
});

/** The lines of the recipe of a package without version, which nothing is said about, in both stages. */
function stagesOf(scheme: Scheme, more: Partial<RecipeOptions> = {}) {
  const plain = { name: 'server', baseImage: scheme.baseImage, addPackages: [], buildId: 'b', ...more };
  const lines = (buildRecipe(scheme, plain).files['Dockerfile'] ?? '').split('\n');
  const at = lines.findLastIndex((line) => line.startsWith('FROM '));
  return { builder: lines.slice(0, at), final: lines.slice(at) };
}

/** Where the base image has its programs, also one that does not say. */
const SYSTEM = '${PATH:-/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin}';

const installs = (...names: readonly string[]): string =>
  `RUN ${JSON.stringify(['/bin/sh', '/skep/packages.sh', 'optional', ...names])}`;

describe('what nobody has said otherwise', () => {
  test.each<[Scheme, { readonly builder: readonly string[]; readonly final: readonly string[] }]>([
    [
      UVX,
      {
        builder: [
          'FROM python:3.14-slim AS builder',
          installs('ca-certificates', 'git'),
          'ENV UV_TOOL_DIR=/opt/uv-tools UV_TOOL_BIN_DIR=/opt/uv-tools/bin UV_PYTHON_DOWNLOADS=never UV_NO_PROGRESS=1',
          'RUN ["/bin/sh","/skep/fetch.sh","--","server"]',
        ],
        final: [
          'FROM python:3.14-slim',
          installs('ca-certificates', 'git'),
          'COPY --from=builder /opt/uv-tools /opt/uv-tools',
          `ENV PATH=${SYSTEM}:/opt/uv-tools/bin`,
          'ENV HOME=/home/skep PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1',
        ],
      },
    ],
    [
      NPX,
      {
        builder: [
          'FROM node:24-alpine AS builder',
          installs('git', 'ca-certificates'),
          'WORKDIR /build',
          expect.stringMatching(/^ENV NODE_ENV=production (?=.*audit=false)(?=.*fund=false)(?=.*progress=false)(?=.*update_notifier=false)(?=.*loglevel=error)/), // prettier-ignore
          'RUN ["npm","install","--save-exact","--omit=dev","--","server"]',
        ],
        final: [
          'FROM node:24-alpine',
          installs('git', 'ca-certificates'),
          'COPY --chown=1000:1000 --from=builder /build /app',
          `ENV PATH=${SYSTEM}:/app/node_modules/.bin`,
          'ENV NODE_ENV=production HOME=/home/skep NODE_PATH=/app/node_modules',
        ],
      },
    ],
    [
      GO,
      {
        builder: [
          'FROM golang:1.26-alpine AS builder',
          installs('ca-certificates', 'git'),
          expect.stringMatching(/^ENV CGO_ENABLED=0 GOOS=linux GO111MODULE=on /),
          'RUN ["/bin/sh","/skep/fetch.sh","install","server@latest"]',
        ],
        final: ['FROM scratch', 'COPY --from=builder /app/root /'],
      },
    ],
  ])('is what the builds of $name stand on', (scheme, stages) => {
    const all = ['WORKDIR /app', 'USER 1000:1000', 'ENTRYPOINT ["/app/server/run"]', 'CMD []'];
    expect(stagesOf(scheme)).toEqual({
      builder: expect.arrayContaining([...stages.builder]),
      final: expect.arrayContaining([...stages.final, ...all]),
    });
  });

  test('takes requirements beside a Python package, each as an argument', () => {
    expect(stagesOf(UVX, { version: '1.2', buildWith: ['mcp<2', 'x[y]'] }).builder).toContain(
      'RUN ["/bin/sh","/skep/fetch.sh","--with","mcp<2","--with","x[y]","--","server==1.2"]',
    );
  });

  test('trusts an authority before anything is fetched', () => {
    for (const scheme of [UVX, NPX, GO]) {
      const { builder } = stagesOf(scheme, { caCert: 'PEM' });
      const places = [/"optional"/, /"trust"/, /^ENV SSL_CERT_FILE=/, /fetch\.sh|"npm"/].map((one) =>
        builder.findIndex((line) => one.test(line)),
      );
      expect(places).toEqual(places.toSorted((a, b) => a - b));
      expect(places).not.toContain(-1);
    }
  });
});

test.each([
  '',
  '-x',
  '--index-url=x',
  'a;b',
  'a$(id)',
  'a`id`',
  'a|b',
  'a&b',
  "a'b",
  'a"b',
  'a\nb',
  'a@b',
  'a/b',
  '../a',
  'a'.repeat(201),
])('no requirement is %j', (requirement) => {
  expect(() => stagesOf(UVX, { buildWith: ['mcp', requirement] })).toThrow(
    expect.objectContaining({ code: 'runtime/invalid-workload' }),
  );
});

test.each(['mcp', 'mcp<2', 'mcp>=1.2,!=1.3', 'mcp[cli]~=1.2', 'mcp ==1.*', 'a.b_c-d+e'])(
  'a requirement may be %j',
  (requirement) => {
    expect(stagesOf(UVX, { buildWith: [requirement] }).builder).toContain(
      `RUN ${JSON.stringify(['/bin/sh', '/skep/fetch.sh', '--with', requirement, '--', 'server'])}`,
    );
  },
);

test.each([
  ['npx', NPX],
  ['go', GO],
])('requirements beside a package of %s are refused, whoever asks for them', (name, scheme) => {
  expect(() => buildRecipe(scheme, { ...options, buildWith: ['mcp<2'] })).toThrow(
    `build_with is not supported for ${name}:// builds`,
  );
});

test('a Go program stands alone, unless system packages are added to it', () => {
  const last = (addPackages: readonly string[]): string =>
    finalStage(buildRecipe(GO, { ...options, addPackages }).files['Dockerfile'] ?? '');
  expect(last([])).toContain('FROM scratch\n');
  expect(last([])).not.toMatch(/^RUN/m);
  expect(last(['git'])).toContain('FROM node:24-alpine\n');
});

test('arguments are baked into the entry point as they are', () => {
  const recipe = buildRecipe(NPX, { ...options, args: ["it's", '$HOME', 'a"b'] });
  expect(recipe.files['Dockerfile']).toContain(
    String.raw`ENTRYPOINT ["/app/server/run","it's","$HOME","a\"b"]`,
  );
});

describe('chooseBin', () => {
  test.each([
    ['a string is the program', '@s/x', './cli.js', { path: './cli.js' }],
    ['the only one is the program', 'x', { other: 'o.js' }, { path: 'o.js' }],
    ['two names of one file are one program', 'x', { a: 'o.js', b: 'o.js' }, { path: 'o.js' }],
    ['the one named like the package wins', '@s/x', { y: 'y.js', x: 'x.js' }, { path: 'x.js' }],
    ['several are not clear', 'x', { a: 'a.js', b: 'b.js' }, { candidates: ['a', 'b'] }],
    ['none', 'x', undefined, { candidates: [] }],
    ['nonsense', 'x', { x: 3 }, { candidates: [] }],
  ])('%s', (_what, name, bin, expected) => {
    expect(chooseBin(name, bin)).toEqual(expected);
  });
});

describe('imageTag', () => {
  const tag = (changes: Partial<RecipeOptions>, baseImageId = 'sha256:1') => {
    const all = { ...options, ...changes };
    return imageTag({
      scheme: 'npx',
      name: all.name,
      recipe: buildRecipe(NPX, all),
      buildId: all.buildId,
      baseImageId,
    });
  };

  test('is the same for the same inputs, whatever the build id', () => {
    expect(tag({ buildId: 'build-8' })).toBe(tag({}));
    expect(tag({})).toMatch(/^skeplocal\/npx-scope-server:[0-9a-f]{16}$/);
  });

  test('differs when the version, the base, the certificate or the system packages do', () => {
    const tags = [
      tag({}),
      tag({ version: '2' }),
      tag({}, 'sha256:2'),
      tag({ caCert: 'x' }),
      tag({ addPackages: [] }),
    ];
    expect(new Set(tags).size).toBe(tags.length);
  });
});

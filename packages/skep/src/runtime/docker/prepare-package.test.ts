import { describe, expect, test } from 'vitest';
import { UVX } from '../../protocol/uvx.ts';
import type { PackageSource } from '../../protocol/reference.ts';
import { host } from '../gateway/host.fixture.ts';
import type { Prepared } from '../runtime.ts';
import { scriptedEngine, type EngineOptions, type EngineUnderTest, type Script } from './engine.fixture.ts';

const BASE = `GET /images/${UVX.baseImage}/json`;
/** Layers of the build that are left, and nothing of them that runs. */
const CLEAN: Readonly<Record<string, Script>> = {
  [BASE]: { body: { Id: 'base', Config: {} } },
  'GET /images/json': { body: [] },
};

const uvx = (name: string, version?: string): PackageSource => ({
  kind: 'package',
  ecosystem: 'pypi',
  name,
  ...(version === undefined ? {} : { version }),
});

async function engineWith(
  script: Readonly<Record<string, Script>>,
  options?: EngineOptions,
): Promise<EngineUnderTest> {
  return scriptedEngine({ ...CLEAN, ...script }, options);
}

const prepare = (
  { runtime, report }: EngineUnderTest,
  source: PackageSource,
  more: object = {},
): Promise<Prepared> =>
  runtime.prepare({ source, addPackages: [], report, signal: new AbortController().signal, ...more });

const built = (...lines: readonly object[]): Script => ({ lines });
const buildsOf = ({ asked }: EngineUnderTest): readonly string[] =>
  asked.filter(({ what }) => what === 'POST /build').map(({ body }) => String(body));

describe('the image of a Python package', () => {
  test('is built once for the same inputs, and found again by its tag', async () => {
    const engine = await engineWith({ 'POST /build': built({ stream: 'Step 1/2 : FROM x\n' }) });
    const { reference, ours } = await prepare(engine, uvx('server', '1.0.0'));
    expect(reference).toMatch(/^skeplocal\/uvx-server:[0-9a-f]{16}$/);
    expect(ours).toBe(true);
    const again = await engineWith({ [`GET /images/${reference}/json`]: { body: { Id: 'i', Config: {} } } });
    expect(await prepare(again, uvx('server', '1.0.0'))).toMatchObject({ reference });
    expect(buildsOf(again)).toEqual([]);
    expect(again.told).toEqual([]);
  });

  test('is built anew without an exact version when its index has something new, and only then', async () => {
    const files = ['server-1.0-py3-none-any.whl'];
    const index = await host((_request, response) => {
      response.writeHead(200, { 'content-type': 'application/vnd.pypi.simple.v1+json' });
      response.end(
        JSON.stringify({ files: files.map((filename) => ({ filename, url: filename, hashes: {} })) }),
      );
    });
    const env = { UV_DEFAULT_INDEX: index.url };
    const run = async (there?: string): Promise<readonly [string, number]> => {
      const image =
        there === undefined ? {} : { [`GET /images/${there}/json`]: { body: { Id: 'i', Config: {} } } };
      const engine = await engineWith({ 'POST /build': built(), ...image }, { env });
      return [(await prepare(engine, uvx('server'))).reference, buildsOf(engine).length];
    };
    const [reference] = await run();
    expect(await run(reference)).toEqual([reference, 0]);
    files.push('server-1.1-py3-none-any.whl');
    expect(await run(reference)).toEqual([expect.not.stringContaining(reference), 1]);
  });

  test('of npm asks no registry where its version is exact', async () => {
    const engine = await engineWith(
      { 'POST /build': built(), 'GET /images/node:24-alpine/json': { body: { Id: 'base', Config: {} } } },
      { env: { npm_config_registry: 'http://127.0.0.1:9/' } },
    );
    const source = { kind: 'package', ecosystem: 'npm', name: 'server', version: '1.2.3' } as const;
    expect(await prepare(engine, source)).toMatchObject({ version: '1.2.3' });
    expect(engine.told).toEqual(['Building an image for npx://server@1.2.3']);
    await expect(prepare(engine, { ...source, version: '^1.2.3' })).rejects.toThrow('cannot reach');
  });

  test('is built again when that is asked for, and what had its name before is removed', async () => {
    const first = await engineWith({ 'POST /build': built() });
    const { reference } = await prepare(first, uvx('server', '1.0.0'));
    const engine = await engineWith({
      'POST /build': built(),
      [`GET /images/${reference}/json`]: { body: { Id: 'earlier', Config: {} } },
      'DELETE /images/earlier': {},
    });
    expect(await prepare(engine, uvx('server', '1.0.0'), { rebuild: true })).toMatchObject({ reference });
    expect(engine.calls().filter((one) => /^(?:POST \/build|DELETE)/.test(one))).toEqual([
      'POST /build',
      'DELETE /images/earlier',
    ]);
  });

  test('is built once by two commands that want it at the same time', async () => {
    let there = false;
    const source = uvx('server', '1.0.0');
    const { reference } = await prepare(await engineWith({ 'POST /build': built() }), source);
    const engine = await engineWith({
      'POST /build': () => {
        there = true;
        return { lines: [] };
      },
      [`GET /images/${reference}/json`]: () =>
        there ? { body: { Id: 'i', Config: {} } } : { status: 404, body: { message: 'no' } },
    });
    await Promise.all([prepare(engine, source), prepare(engine, source)]);
    expect(buildsOf(engine)).toHaveLength(1);
  });

  test('is another one for another version, base, certificate, index or system package', async () => {
    const tagOf = async (
      source: PackageSource,
      more: object = {},
      options?: EngineOptions,
    ): Promise<string> => {
      const engine = await engineWith(
        { 'POST /build': built(), 'GET /images/other:1/json': { body: { Id: 'other', Config: {} } } },
        options,
      );
      return (await prepare(engine, source, more)).reference;
    };
    const plain = uvx('server', '1.0.0');
    const tags = [
      await tagOf(plain),
      await tagOf(uvx('server', '1.0.1')),
      await tagOf(uvx('other', '1.0.0')),
      await tagOf(plain, { baseImage: 'other:1' }),
      await tagOf(plain, { caCert: async () => 'PEM' }),
      await tagOf(plain, { addPackages: ['git'] }),
      await tagOf(plain, {}, { env: { UV_DEFAULT_INDEX: 'https://mirror.example/simple' } }),
    ];
    expect(new Set(tags).size).toBe(tags.length);
    expect(await tagOf(plain)).toBe(tags[0]);
    // Those of the person who asked are what counts.
    expect(await tagOf(plain, { env: { UV_DEFAULT_INDEX: 'https://mirror.example/simple' } })).toBe(
      tags.at(-1),
    );
  });

  test('is built from what we send alone: nothing of the working directory, and no login', async () => {
    const engine = await engineWith(
      { 'POST /build': built() },
      { env: { UV_DEFAULT_INDEX: 'https://me:hunter2@mirror.example/simple' } },
    );
    await prepare(engine, uvx('server', '1.0.0'));
    const [context = ''] = buildsOf(engine);
    const names = [...context.matchAll(/([a-zA-Z][\w./-]*)\0+000\d{3}/g)].map(([, name]) => name);
    expect(names).toEqual([
      'Dockerfile',
      'skep/packages.sh',
      'skep/fetch.sh',
      'skep/link-entry.py',
      'skep/home/.keep',
    ]);
    expect(context).not.toContain('hunter2');
    expect(engine.asked.find(({ what }) => what === 'POST /build')?.query).toMatchObject({
      forcerm: '1',
      dockerfile: 'Dockerfile',
    });
  });

  test('shows what the builder says, without the noise of layers, colours and line ends', async () => {
    const engine = await engineWith({
      'POST /build': built(
        { stream: 'Step 1/9 : RUN uv tool' },
        { stream: ' install\r\n' },
        { stream: ' ---> Running in 0123\n---> 4567\n\u001B[32mResolved\u001B[0m 3 packages\n' },
      ),
    });
    await prepare(engine, uvx('server', '1.0.0'));
    expect(engine.told).toEqual([
      'Building an image for uvx://server@1.0.0',
      'Step 1/9 : RUN uv tool install',
      'Resolved 3 packages',
    ]);
  });

  test.each([
    [
      [{ stream: 'Step 2/9 : RUN x\n' }, { stream: 'error: disk full\n' }, { error: 'exit 1' }],
      'runtime/build-failed',
      'the image for "uvx://server@1.0.0" could not be built: error: disk full',
    ],
    [
      [{ stream: 'Step 2/9 : RUN x\n' }, { errorDetail: { message: 'no space' }, error: 'no space' }],
      'runtime/build-failed',
      'the image for "uvx://server@1.0.0" could not be built: no space',
    ],
  ])('that fails is told with its last words: %j', async (lines, code, message) => {
    const engine = await engineWith({ 'POST /build': { lines } });
    await expect(prepare(engine, uvx('server', '1.0.0'))).rejects.toMatchObject({ code, message });
  });

  test('leaves no layer behind, however it ends', async () => {
    for (const answer of [built(), { status: 500, lines: [{ message: 'no' }] }]) {
      const engine = await scriptedEngine({
        [BASE]: { body: { Id: 'base', Config: {} } },
        'POST /build': answer,
        'GET /images/json': { body: [{ Id: 'layer' }] },
        'DELETE /images/layer': {},
      });
      await prepare(engine, uvx('server', '1.0.0')).catch(() => {});
      expect(engine.calls().at(-1)).toBe('DELETE /images/layer');
      const { query } = engine.asked.find(({ what }) => what === 'GET /images/json') ?? {};
      expect(JSON.parse(query?.['filters'] ?? '')).toEqual({
        dangling: ['true'],
        label: ['skep.build=owner-random'],
      });
    }
  });

  test('whose base image is not to be had is not begun', async () => {
    const engine = await scriptedEngine({ 'POST /images/create': { lines: [{ error: 'unknown' }] } });
    await expect(prepare(engine, uvx('server', '1.0.0'), { baseImage: 'absent:1' })).rejects.toMatchObject({
      code: 'runtime/image-not-found',
    });
    expect(buildsOf(engine)).toEqual([]);
  });
});

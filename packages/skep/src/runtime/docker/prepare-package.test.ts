import { describe, expect, test } from 'vitest';
import { UVX } from '../../protocol/uvx.ts';
import type { PackageSource } from '../../protocol/reference.ts';
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

  test('is built anew each time without an exact version, which may mean a newer one', async () => {
    const engine = await engineWith({ 'POST /build': built() });
    const { reference } = await prepare(engine, uvx('server'));
    const again = await engineWith({
      'POST /build': built(),
      [`GET /images/${reference}/json`]: { body: { Id: 'i', Config: {} } },
    });
    await prepare(again, uvx('server'));
    expect(buildsOf(again)).toHaveLength(1);
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
  });

  test('is built from what we send alone: nothing of the working directory, and no login', async () => {
    const engine = await engineWith(
      { 'POST /build': built() },
      { env: { UV_DEFAULT_INDEX: 'https://me:hunter2@mirror.example/simple' } },
    );
    await prepare(engine, uvx('server', '1.0.0'));
    const [context = ''] = buildsOf(engine);
    const names = [...context.matchAll(/([a-zA-Z][\w./-]*)\0+000\d{3}/g)].map(([, name]) => name);
    expect(names).toEqual(['Dockerfile', 'skep/packages.sh', 'skep/link-entry.py', 'home/.keep']);
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

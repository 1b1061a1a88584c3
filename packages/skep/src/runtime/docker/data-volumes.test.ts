import { describe, expect, test } from 'vitest';
import { STDIO_SPEC } from '../doubles/stdio-spec.ts';
import { Spares } from '../spares.ts';
import { scriptedEngine, type Script } from './engine.fixture.ts';

const VOLUME = 'skep-me-a1.data';
const labels = { 'skep.managed': 'true', 'skep.name': 'a1', 'skep.state': 'me' };

/** A tar stream of files by name, with their sizes; a name that ends in a slash is a directory. */
function tar(files: Readonly<Record<string, number>>): Buffer {
  const blocks = Object.entries(files).flatMap(([name, size]) => {
    const head = Buffer.alloc(512);
    head.write(name);
    head.write(size.toString(8).padStart(11, '0'), 124);
    head.write(name.endsWith('/') ? '5' : '0', 156);
    return [head, Buffer.alloc(Math.ceil(size / 512) * 512)];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

const container = (volume = VOLUME): Script => ({
  body: { Config: { Labels: labels }, Mounts: [{ Type: 'volume', Name: volume, Destination: '/data' }] },
});

describe('a workload on an engine', () => {
  test('gets a volume for each path, made once, which says whose it is', async () => {
    const engine = await scriptedEngine({
      'POST /volumes/create': { status: 201 },
      'POST /networks/create': { status: 201, body: { Id: 'n' } },
      'DELETE /networks/n': { status: 204 },
      'POST /containers/create': { status: 201 },
    });
    await engine.runtime.create({
      ...STDIO_SPEC,
      name: 'a1',
      labels: { 'skep.state': 'me' },
      data: ['/data'],
    });
    const made = engine.asked.filter(({ what }) => what === 'POST /volumes/create');
    expect(made.map(({ body }) => body)).toEqual([{ Name: VOLUME, Labels: labels }]);
    const body = engine.asked.find(({ what }) => what === 'POST /containers/create')?.body;
    expect(body).toMatchObject({
      HostConfig: { Mounts: [{ Type: 'volume', Source: VOLUME, Target: '/data' }] },
    });
  });

  test('leaves no volume that was made for it when it cannot be created', async () => {
    const engine = await scriptedEngine({
      'POST /volumes/create': { status: 201 },
      'POST /networks/create': { status: 201, body: { Id: 'n' } },
      'DELETE /networks/n': { status: 204 },
      'POST /containers/create': { status: 500, body: { message: 'full' } },
      [`DELETE /volumes/${VOLUME}`]: { status: 204 },
    });
    const spec = { ...STDIO_SPEC, name: 'a1', labels: { 'skep.state': 'me' }, data: ['/data'] };
    await expect(engine.runtime.create(spec)).rejects.toThrow('full');
    expect(engine.calls()).toContain(`DELETE /volumes/${VOLUME}`);
  });

  test.each([
    ['nothing is in it', { 'data/': 0 }, true],
    ['nothing is in it but what images of packages begin with', { './': 0, './.keep': 0 }, true],
    ['a file is in it', { 'data/': 0, 'data/memory.jsonl': 10 }, false],
    ['a directory is in it', { 'data/': 0, 'data/sub/': 0 }, false],
    ['its .keep holds something', { 'data/': 0, 'data/.keep': 3 }, false],
  ])('takes its volume with it when %s', async (_what, files, goes) => {
    const engine = await scriptedEngine({
      'GET /containers/a1/json': container(),
      'GET /containers/a1/archive': { raw: tar(files) },
      'DELETE /containers/a1': { status: 204 },
      [`DELETE /volumes/${VOLUME}`]: { status: 204 },
      'GET /networks': { body: [] },
    });
    await engine.runtime.remove('a1');
    expect(engine.calls().includes(`DELETE /volumes/${VOLUME}`)).toBe(goes);
  });

  test('keeps a volume that cannot be looked into, and never takes one of a person', async () => {
    for (const volume of [VOLUME, 'mine', 'skep-other-a1.data']) {
      const engine = await scriptedEngine({
        'GET /containers/a1/json': container(volume),
        'DELETE /containers/a1': { status: 204 },
        'GET /networks': { body: [] },
      });
      await engine.runtime.remove('a1');
      expect(engine.calls().filter((call) => call.startsWith('DELETE /volumes'))).toEqual([]);
    }
  });

  test('is known by its labels when it is gone, and what it kept is removed by them', async () => {
    const engine = await scriptedEngine({
      'GET /volumes': {
        body: {
          Volumes: [
            { Name: VOLUME, Labels: labels },
            { Name: 'mine', Labels: null },
          ],
        },
      },
      [`DELETE /volumes/${VOLUME}`]: { status: 204 },
    });
    expect(await engine.runtime.holdsData('a1', 'me')).toBe(true);
    expect(await engine.runtime.holdsData('a1', 'other')).toBe(false);
    await engine.runtime.removeData('a1', 'me');
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([`DELETE /volumes/${VOLUME}`]);
  });
});

describe('a volume that workloads share', () => {
  const SHARED = 'skep-me.notes';
  const own = { 'skep.managed': 'true', 'skep.state': 'me', 'skep.volume': 'notes' };
  const spec = {
    ...STDIO_SPEC,
    name: 'a1',
    network: 'none',
    labels: { 'skep.state': 'me' },
    volumes: [{ volume: 'notes', target: '/srv/notes', readOnly: false }],
  };
  const ARCHIVE = '/containers/a1/archive';
  /** The header of a directory as an engine tells it. */
  function directory(uid: number, mode: string): Buffer {
    const head = tar({ 'notes/': 0 });
    head.write(mode.padStart(7, '0'), 100);
    head.write(uid.toString(8).padStart(7, '0'), 108);
    return head;
  }
  const engineWith = (head: Buffer) =>
    scriptedEngine({
      'POST /volumes/create': { status: 201 },
      'POST /containers/create': { status: 201 },
      [`GET ${ARCHIVE}`]: { raw: head },
      [`PUT ${ARCHIVE}`]: { status: 200 },
    });

  test('is made once, by the name that its owner gave it, and mounted as it was asked for', async () => {
    const engine = await engineWith(directory(1000, '755'));
    await engine.runtime.create({
      ...spec,
      volumes: spec.volumes.map((one) => ({ ...one, readOnly: true })),
    });
    expect(engine.asked.find(({ what }) => what === 'POST /volumes/create')?.body).toEqual({
      Name: SHARED,
      Labels: own,
    });
    expect(engine.asked.find(({ what }) => what === 'POST /containers/create')?.body).toMatchObject({
      HostConfig: {
        SecurityOpt: ['no-new-privileges', 'label:disable'],
        Mounts: [{ Source: SHARED, Target: '/srv/notes', ReadOnly: true, VolumeOptions: { Labels: own } }],
      },
    });
    expect(engine.calls()).not.toContain(`PUT ${ARCHIVE}`);
  });

  test.each([
    ['as the engine makes it', 0, '755', true],
    ['of another user', 1000, '755', false],
    ['that its image shuts', 0, '700', false],
    ['that is open already', 0, '777', false],
  ])('%s is opened for whom servers are: %d, %s', async (_what, uid, mode, opened) => {
    const engine = await engineWith(directory(uid, mode));
    await engine.runtime.create(spec);
    expect(engine.calls().includes(`PUT ${ARCHIVE}`)).toBe(opened);
  });

  test('goes with its last container when nothing is in it, and stays while another uses it', async () => {
    for (const status of [204, 409]) {
      const engine = await scriptedEngine({
        'GET /containers/a1/json': container(SHARED),
        [`GET ${ARCHIVE}`]: { raw: tar({ 'notes/': 0 }) },
        'DELETE /containers/a1': { status: 204 },
        [`DELETE /volumes/${SHARED}`]: { status, body: { message: 'in use' } },
        'GET /networks': { body: [] },
      });
      await engine.runtime.remove('a1');
      expect(engine.calls()).toContain(`DELETE /volumes/${SHARED}`);
    }
  });

  test('is found by its name, and removed by it', async () => {
    const engine = await scriptedEngine({
      'GET /volumes': { body: { Volumes: [] } },
      [`GET /volumes/${SHARED}`]: { body: {} },
      [`DELETE /volumes/${SHARED}`]: { status: 204 },
    });
    expect(await engine.runtime.holdsData('a1', 'me', ['notes'])).toBe(true);
    expect(await engine.runtime.holdsData('a1', 'me')).toBe(false);
    await engine.runtime.removeData('a1', 'me', ['notes']);
    expect(engine.calls().filter((call) => call.startsWith('DELETE'))).toEqual([`DELETE /volumes/${SHARED}`]);
  });
});

describe('an image that is started as another user than its root', () => {
  const SPEC = { ...STDIO_SPEC, network: 'none', insteadOfRoot: true };
  const ARCHIVE = 'GET /containers/a1/archive';
  const imageOf = (letter: string) => ({
    body: { Image: `sha256:${letter.repeat(64)}`, Config: { Image: 'fake:1' } },
  });
  const script = (image: Script, files: Readonly<Record<string, number>>): Record<string, Script> => ({
    'POST /containers/create': { status: 201 },
    'DELETE /containers/a1': { status: 204 },
    'GET /containers/a1/json': image,
    [ARCHIVE]: { raw: tar(files) },
  });

  test('is looked at once for files of root, for all workloads of its id', async () => {
    const engine = await scriptedEngine(
      script([imageOf('a'), imageOf('a'), imageOf('b')], { 'root/': 0, 'root/.profile': 9 }),
    );
    const looks = (): number => engine.calls().filter((call) => call === ARCHIVE).length;
    await engine.runtime.create(SPEC);
    await engine.runtime.create(SPEC);
    expect(looks()).toBe(1);
    // The name means another image by now.
    await engine.runtime.create(SPEC);
    expect(looks()).toBe(2);
  });

  test('is looked at each time where something is mounted, and refused each time where root has files', async () => {
    const empty = await scriptedEngine(script(imageOf('a'), { 'root/': 0 }));
    const mounts = [{ source: '/somewhere', target: '/root', readOnly: true }];
    for (const one of [{ ...SPEC, mounts }, { ...SPEC, overlays: mounts }, SPEC])
      await empty.runtime.create(one);
    expect(empty.calls().filter((call) => call === ARCHIVE)).toHaveLength(3);
    const full = await scriptedEngine(script(imageOf('a'), { 'root/': 0, 'root/token': 9 }));
    for (const _ of [1, 2]) await expect(full.runtime.create(SPEC)).rejects.toThrow('keeps files in /root');
    expect(full.calls().filter((call) => call === ARCHIVE)).toHaveLength(2);
  });

  test('is looked at while its network is made, and not made again where root has files', async () => {
    const { promise: isSeen, resolve } = Promise.withResolvers<void>();
    const engine = await scriptedEngine(
      {
        ...script(imageOf('a'), {}),
        [ARCHIVE]() {
          resolve();
          return { raw: tar({ 'root/': 0, 'root/token': 9 }) };
        },
        'POST /networks/create': () => isSeen.then(() => ({ status: 201, body: { Id: 'n1' } })),
        'DELETE /networks/n1': { status: 204 },
      },
      { spares: new Spares() },
    );
    const { promise: isAsked, resolve: asked } = Promise.withResolvers<void>();
    const ahead = engine.runtime.makeAhead?.(undefined, asked);
    await isAsked;
    const wanted = { ...SPEC, network: 'bridge', labels: { 'skep.state': 'owner' } };
    await expect(engine.runtime.create(wanted)).rejects.toThrow('keeps files in /root');
    await ahead;
    const made = engine.calls().filter((call) => /^(?:POST|DELETE) \/(?:containers|networks)/.test(call));
    expect(new Set(made)).toEqual(
      new Set([
        'POST /networks/create',
        'POST /containers/create',
        'DELETE /containers/a1',
        'DELETE /networks/n1',
      ]),
    );
    expect(made.filter((call) => call.startsWith('POST'))).toHaveLength(2);
  });
});

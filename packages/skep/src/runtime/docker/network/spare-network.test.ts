import { expect, onTestFinished, test, vi } from 'vitest';
import { STDIO_SPEC } from '../../doubles/stdio-spec.ts';
import type { WorkloadSpec } from '../../runtime.ts';
import { Spares } from '../../spares.ts';
import { EngineClient } from '../client.ts';
import { endpointText } from '../endpoint.ts';
import { scriptedEngine, type Script, type Scripted } from '../engine.fixture.ts';
import { makeSpare } from './spare-network.ts';

const SPEC: WorkloadSpec = { ...STDIO_SPEC, labels: { 'skep.state': 'owner' } };
const IS_THERE: Script = { body: { Containers: {} } };

const made = (Id: string): Scripted => ({ status: 201, body: { Id } });
const info = (ID: string): Scripted => ({ body: { ID, ServerVersion: '1' } });
const signal = (): AbortSignal => AbortSignal.timeout(5_000);

/** An engine that has a network made ahead, `seen` when it is asked for that; and what it was asked since. */
async function engineWith(seen: Script, described: Script) {
  const spares = new Spares();
  const engine = await scriptedEngine(
    {
      'POST /networks/create': [made('n1'), made('n2'), made('n3')],
      'POST /containers/create': { status: 201 },
      'GET /networks': { body: [] },
      'GET /networks/n2': seen,
      'GET /info': described,
    },
    { spares },
  );
  await engine.runtime.create(SPEC);
  await engine.runtime.makeSpare?.();
  await vi.waitFor(() => expect(engine.calls()).toContain('GET /info'));
  const before = engine.asked.length;
  const said = async (): Promise<unknown> =>
    (await spares.peek(endpointText({ kind: 'unix', path: engine.socket })))?.said;
  return { ...engine, said, since: () => engine.calls().slice(before) };
}

test('an engine that has the network made ahead is who it said to be then', async () => {
  const { runtime, said, since } = await engineWith(IS_THERE, info('then'));
  await vi.waitFor(async () => expect(await said()).toBeDefined());
  expect(await runtime.probe(signal())).toMatchObject({ id: 'then', version: '1' });
  expect(since()).toEqual(['GET /networks/n2']);
});

test.each<[string, Script]>([
  ['does not have it', { status: 404 }],
  ['cannot say whether it has it', { status: 500 }],
  ['does not say whether it has it', () => new Promise(() => {})],
])('one that %s may be another one, and is asked who it is', async (_, seen) => {
  const { runtime, said, since } = await engineWith(seen, [info('then'), info('another one')]);
  await vi.waitFor(async () => expect(await said()).toBeDefined());
  expect(await runtime.probe(signal())).toMatchObject({ id: 'another one' });
  expect(since()).toEqual(['GET /networks/n2', 'GET /info']);
});

test.each<[string, Scripted]>([
  ['did not say', { status: 500 }],
  ['said nothing that can be read of', { body: 'somebody else stands in between' }],
])('one that %s who it is then is asked again', async (_, then) => {
  const { runtime, since } = await engineWith(IS_THERE, [then, info('now')]);
  expect(await runtime.probe(signal())).toMatchObject({ id: 'now' });
  expect(since()).toEqual(['GET /info']);
});

test('one that is silent about itself keeps nobody from its network', async () => {
  const { promise, resolve } = Promise.withResolvers<Scripted>();
  onTestFinished(() => resolve({ status: 500 }));
  const { runtime, since } = await engineWith(IS_THERE, () => promise);
  await runtime.create({ ...SPEC, name: 'a2' });
  expect(since()).toEqual(['GET /networks/n2', 'POST /containers/create']);
});

test('nobody waits for it to say who it is once that network is removed', async () => {
  const { socket } = await scriptedEngine({
    'POST /networks/create': made('n1'),
    'DELETE /networks/n1': { status: 204 },
  });
  const spares = new Spares();
  const given: AbortSignal[] = [];
  const describe = (signal: AbortSignal): Promise<unknown> => {
    given.push(signal);
    return new Promise(() => {});
  };
  const client = new EngineClient({ kind: 'unix', path: socket });
  await makeSpare({ client, randomId: () => 'random', describe }, spares, 'owner');
  expect(given.map(({ aborted }) => aborted)).toEqual([false]);
  await spares.close();
  expect(given.map(({ aborted }) => aborted)).toEqual([true]);
});

test('one that is to make a network for a command that begins is not asked who it is', async () => {
  const engine = await scriptedEngine({ 'POST /networks/create': made('n1') }, { spares: new Spares() });
  await engine.runtime.makeAhead?.();
  expect(engine.calls()).not.toContain('GET /info');
});

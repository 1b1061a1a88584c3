import { describe, expect, test } from 'vitest';
import { ALIVE_MS } from '../writes/config-generation.ts';
import type { DesiredState } from '../desired-state.ts';
import type { NamedRegistry, NamedSource } from '../rows.ts';
import {
  ACME,
  allowed,
  type Fixture,
  OTHER,
  publishOf,
  replacementOf,
  serverOf,
  settingsOf,
  sourceOf,
} from './fixture.ts';

const NOTHING = { created: [], updated: [], deleted: [] };

const state = (sources: readonly NamedSource[], registries: readonly NamedRegistry[] = []): DesiredState => ({
  sources,
  registries,
});

const registryOf = (name: string, ...sources: string[]): NamedRegistry => ({ name, sources, claims: '' });

/** The configuration file against the store (docs/behaviour/registry.md#reconciliation). */
export function reconciliation(fixture: Fixture): void {
  describe('reconciliation', () => {
    followsTheFile(fixture);
    changesKinds(fixture);
    refuses(fixture);
    keepsWhatIsInUse(fixture);
    standsBack(fixture);
  });
}

function followsTheFile(fixture: Fixture): void {
  test('creates, updates and deletes what the file says, and reports it', async () => {
    const { store } = fixture;
    const first = await store.reconcile(
      state([sourceOf('a'), sourceOf('b')], [registryOf('x', 'a', 'b'), registryOf('y', 'b')]),
    );
    expect(first.value).toEqual({
      inForce: true,
      sources: { ...NOTHING, created: ['a', 'b'] },
      registries: { ...NOTHING, created: ['x', 'y'] },
      blocked: [],
    });
    const second = await store.reconcile(
      state([sourceOf('c'), sourceOf('a', 'git')], [registryOf('x', 'c', 'a')]),
    );
    expect(second.value).toEqual({
      inForce: true,
      sources: { created: ['c'], updated: ['a'], deleted: ['b'] },
      registries: { created: [], updated: ['x'], deleted: ['y'] },
      blocked: [],
    });
    expect((await store.listSources()).map(({ name, kind }) => `${name} ${kind}`)).toEqual([
      'a git',
      'c file',
    ]);
    expect(await store.listRegistries()).toMatchObject([
      { name: 'x', sources: ['c', 'a'], creationType: 'CONFIG' },
    ]);
  });

  test('changes nothing when nothing changed', async () => {
    const desired = state([sourceOf('a', 'git', ACME)], [registryOf('x', 'a')]);
    const { revision } = await fixture.store.reconcile(desired);
    const again = await fixture.store.reconcile(desired);
    expect(again).toEqual({
      revision,
      value: { inForce: true, sources: NOTHING, registries: NOTHING, blocked: [] },
    });
  });

  test('moves the managed place from one source to another', async () => {
    const { store } = fixture;
    await store.reconcile(state([sourceOf('a', 'managed'), sourceOf('b')]));
    await store.reconcile(state([sourceOf('b', 'managed'), sourceOf('a')]));
    await store.reconcile(state([sourceOf('c', 'managed')]));
    expect((await store.listSources()).map(({ name, kind }) => [name, kind])).toEqual([['c', 'managed']]);
  });

  test('does the same once when several processes start at the same time', async () => {
    const others = [fixture.store, await fixture.another()];
    const desired = state([sourceOf('a'), sourceOf('m', 'managed')], [registryOf('x', 'a', 'm')]);
    const done = await Promise.all(others.map((store) => store.reconcile(desired)));
    expect(done.flatMap(({ value }) => value.sources.created)).toEqual(['a', 'm']);
    expect(new Set(done.map(({ revision }) => revision)).size).toBe(1);
  });
}

function changesKinds(fixture: Fixture): void {
  test('forgets what was published when a source stops being managed, and what was synchronised when it starts', async () => {
    const { store } = fixture;
    await store.reconcile(state([sourceOf('a', 'managed')]));
    await store.publish(publishOf('p/p', '1', ACME), allowed);
    await store.reconcile(state([sourceOf('a', 'file', OTHER)]));
    expect(await store.readEntries('a')).toEqual([]);
    await store.replaceEntries(replacementOf('a', [serverOf('s/s', { '1': '{}' })], 'T1'));
    await store.reconcile(state([sourceOf('a', 'git', OTHER)]));
    expect(await store.readEntries('a')).toHaveLength(1);
    await store.reconcile(state([sourceOf('a', 'managed')]));
    expect(await store.readEntries('a')).toEqual([]);
    expect(await store.readStatus('a')).toMatchObject({ message: 'Non-synced source (type: managed)' });
    await store.publish(publishOf('p/p', '1', ACME), allowed);
    await store.reconcile(state([sourceOf('a', 'kubernetes')]));
    expect(await store.readEntries('a')).toEqual([]);
    await store.replaceEntries(replacementOf('a', [serverOf('s/s', { '1': '{}' })], 'T1'));
    await store.reconcile(state([sourceOf('a', 'managed')]));
    expect(await store.readEntries('a')).toEqual([]);
  });
}

function refuses(fixture: Fixture): void {
  test('refuses to take over what was made through the API, with all names, and changes nothing', async () => {
    const { store } = fixture;
    await store.putSource('s1', settingsOf('file'), allowed);
    await store.putSource('s2', settingsOf('file', ACME), allowed);
    await store.putRegistry('r1', { sources: ['s1'], claims: ACME }, allowed);
    const before = await store.changesSince(0);
    const attempt = store.reconcile(
      state(
        [sourceOf('new'), sourceOf('s2'), sourceOf('s1')],
        [registryOf('r1', 's1'), registryOf('r2', 's2')],
      ),
    );
    await expect(attempt).rejects.toMatchObject({
      code: 'store/api-created',
      message:
        'cannot overwrite API-created sources: [s2, s1]; cannot overwrite API-created registries: [r1]',
    });
    expect(await store.changesSince(0)).toEqual(before);
    expect(await store.readRegistry('r1')).toMatchObject({ claims: ACME, creationType: 'API' });
  });

  test('refuses a managed source beside one that was made through the API', async () => {
    await fixture.store.putSource('internal', settingsOf('managed'), allowed);
    const attempt = fixture.store.reconcile(state([sourceOf('a'), sourceOf('mine', 'managed')]));
    await expect(attempt).rejects.toMatchObject({
      code: 'store/managed-exists',
      message:
        'cannot add the managed source "mine": the managed source "internal" was created through the API',
    });
    expect(await fixture.store.readSource('a')).toBeUndefined();
  });
}

function keepsWhatIsInUse(fixture: Fixture): void {
  test('leaves everything alone that was made through the API', async () => {
    const { store } = fixture;
    await store.putSource('s1', settingsOf('file'), allowed);
    await store.putRegistry('r1', { sources: ['s1'], claims: '' }, allowed);
    await store.reconcile(state([sourceOf('a')]));
    await store.reconcile(state([]));
    expect((await store.listSources()).map(({ name }) => name)).toEqual(['s1']);
    expect((await store.listRegistries()).map(({ name }) => name)).toEqual(['r1']);
  });

  test('keeps a source that an API registry lists, flagged and reported by name, until it is free', async () => {
    const { store } = fixture;
    await store.reconcile(state([sourceOf('a'), sourceOf('b')], [registryOf('x', 'a', 'b')]));
    await store.replaceEntries(replacementOf('a', [serverOf('s/s', { '1': '{}' })], 'T1'));
    await store.putRegistry('r1', { sources: ['a'], claims: '' }, allowed);
    await store.putRegistry('r2', { sources: ['a'], claims: '' }, allowed);
    const blocked = [{ source: 'a', registries: ['r1', 'r2'] }];
    const { revision, value } = await store.reconcile(state([sourceOf('b')], [registryOf('x', 'b')]));
    expect(value).toMatchObject({ blocked, sources: { deleted: [] } });
    expect(await store.readSource('a')).toMatchObject({ orphaned: true, creationType: 'CONFIG' });
    expect(await store.readEntries('a')).toHaveLength(1);
    const again = await store.reconcile(state([sourceOf('b')], [registryOf('x', 'b')]));
    expect(again).toMatchObject({ revision, value: { blocked } });
    await store.reconcile(state([sourceOf('a'), sourceOf('b')], [registryOf('x', 'b')]));
    expect(await store.readSource('a')).toMatchObject({ orphaned: false });
    await store.deleteRegistry('r1', allowed);
    await store.deleteRegistry('r2', allowed);
    const last = await store.reconcile(state([sourceOf('b')], [registryOf('x', 'b')]));
    expect(last.value).toMatchObject({ blocked: [], sources: { deleted: ['a'] } });
  });

  test('refuses a new managed source while the old one is kept for a registry, and names it', async () => {
    const { store } = fixture;
    await store.reconcile(state([sourceOf('old', 'managed')]));
    await store.putRegistry('r1', { sources: ['old'], claims: '' }, allowed);
    await expect(store.reconcile(state([sourceOf('new', 'managed')]))).rejects.toMatchObject({
      code: 'store/managed-exists',
      message:
        'cannot add the managed source "new": the managed source "old" is still listed by the registries "r1"',
    });
    expect(await store.readSource('old')).toMatchObject({ orphaned: false });
  });
}

/** Several processes with different files, as in the middle of a rollout. */
function standsBack(fixture: Fixture): void {
  const older = state([sourceOf('a'), sourceOf('b')], [registryOf('x', 'a', 'b')]);
  const newer = state([sourceOf('m', 'managed'), sourceOf('b', 'git')], [registryOf('x', 'm', 'b')]);
  const rows = async () => [
    (await fixture.store.listSources()).map(({ name, kind }) => `${name} ${kind}`),
    (await fixture.store.listRegistries()).map(({ name, sources }) => `${name} ${sources.join(' ')}`),
  ];
  const NEWER = [['b git', 'm managed'], ['x m b']];
  const OLDER = [['a file', 'b file'], ['x a b']];

  test('lets an older configuration change nothing while a process runs with a newer one', async () => {
    const { store } = fixture;
    const other = await fixture.another();
    await store.reconcile(older, 'one');
    await other.reconcile(newer, 'two');
    await other.publish(publishOf('p/p', '1'), allowed);
    const { revision } = await store.changesSince(0);
    const restarted = await store.reconcile(older, 'one again');
    expect(restarted).toEqual({
      revision,
      value: { inForce: false, sources: NOTHING, registries: NOTHING, blocked: [] },
    });
    expect(await rows()).toEqual(NEWER);
    expect(await store.readEntries('m')).toHaveLength(1);
    // Neither the order within a file nor the process that has it makes it another configuration.
    const turned = { ...older, sources: older.sources.toReversed() };
    expect((await other.reconcile(turned)).value.inForce).toBe(false);
    expect((await store.reconcile(newer, 'three')).value.inForce).toBe(true);
  });

  test('lets it take over when no process has the newer one any more', async () => {
    const { store } = fixture;
    await store.reconcile(older, 'one');
    await store.reconcile(newer, 'two');
    await store.reconcile(newer, 'three');
    await store.removeReplica('two');
    expect((await store.reconcile(older, 'one')).value.inForce).toBe(false);
    await store.removeReplica('three');
    expect((await store.reconcile(older, 'one')).value.inForce).toBe(true);
    expect(await rows()).toEqual(OLDER);
    // It is the newest now, for as long as somebody has it.
    expect((await store.reconcile(newer, 'four')).value.inForce).toBe(false);
    expect(await rows()).toEqual(OLDER);
  });

  test('counts a process that was killed for a while, and one that says that it runs for as long as it does', async () => {
    const { store, clock } = fixture;
    await store.reconcile(older);
    await store.reconcile(newer, 'two');
    clock.pass(ALIVE_MS - 1);
    await store.renewReplica('two');
    clock.pass(ALIVE_MS - 1);
    expect((await store.reconcile(older)).value.inForce).toBe(false);
    clock.pass(1);
    expect((await store.reconcile(older)).value.inForce).toBe(true);
    expect(await rows()).toEqual(OLDER);
  });

  test('lets a process go back and forth that is alone, and one with a configuration that nobody had', async () => {
    const { store } = fixture;
    for (const desired of [older, newer, older, newer, older]) {
      expect((await store.reconcile(desired, 'one')).value.inForce).toBe(true);
    }
    expect(await rows()).toEqual(OLDER);
    const third = await store.reconcile(state([sourceOf('c')]), 'two');
    expect(third.value).toMatchObject({ inForce: true, sources: { created: ['c'], deleted: ['a', 'b'] } });
  });
}

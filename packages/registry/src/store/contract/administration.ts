import { utcTime } from '@skep/core/time/clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { StoredSource } from '../rows.ts';
import {
  ACME,
  allowed,
  type Fixture,
  OTHER,
  replacementOf,
  serverOf,
  settingsOf,
  sourceOf,
} from './fixture.ts';

/** Sources and registries made through the API. */
export function administration(fixture: Fixture): void {
  describe('administration', () => {
    beforeEach(() =>
      fixture.store.reconcile({
        sources: [sourceOf('one'), sourceOf('two', 'git', ACME)],
        registries: [{ name: 'all', sources: ['two', 'one'], claims: '' }],
      }),
    );
    putsSources(fixture);
    guardsSources(fixture);
    deletesSources(fixture);
    putsRegistries(fixture);
    deletesRegistries(fixture);
  });
}

function putsSources(fixture: Fixture): void {
  test('creates a source, then replaces all of its settings, and keeps who made it and when', async () => {
    const { store, clock } = fixture;
    const full = {
      ...settingsOf('git', ACME),
      config: '{"repository":"r"}',
      format: 'upstream',
      filter: '{}',
    };
    const createdAt = utcTime(clock);
    const created = await store.putSource('api-made', { ...full, interval: 2 ** 40 }, allowed);
    expect(created.value).toEqual({
      created: true,
      source: {
        name: 'api-made',
        ...full,
        interval: 2 ** 40,
        creationType: 'API',
        orphaned: false,
        createdAt,
        updatedAt: createdAt,
      },
    });
    expect(await store.readSource('api-made')).toEqual(created.value.source);
    clock.pass(1000);
    const { value } = await store.putSource('api-made', settingsOf('git'), allowed);
    expect(value).toMatchObject({
      created: false,
      source: {
        claims: '',
        filter: null,
        format: null,
        interval: null,
        createdAt,
        updatedAt: utcTime(clock),
      },
    });
    expect((await store.listSources()).map(({ name }) => name)).toEqual(['api-made', 'one', 'two']);
    expect(await store.readStatus('api-made')).toMatchObject({ phase: 'failed' });
  });

  test('shows the decision the row as it is, and the managed source', async () => {
    const seen: (StoredSource | string | undefined)[] = [];
    await fixture.store.putSource('internal', settingsOf('managed'), ({ existing, managed }) => {
      seen.push(existing, managed);
    });
    const refused = fixture.store.putSource('one', settingsOf('file'), ({ existing, managed }) => {
      seen.push(existing, managed);
      throw new SkepError('access/config-created');
    });
    await expect(refused).rejects.toMatchObject({ code: 'access/config-created' });
    expect(seen).toEqual([
      undefined,
      undefined,
      expect.objectContaining({ name: 'one', creationType: 'CONFIG', kind: 'file' }),
      'internal',
    ]);
    expect(await fixture.store.readSource('nobody')).toBeUndefined();
  });
}

function guardsSources(fixture: Fixture): void {
  test('lets one of many managed sources in, however many ask at once', async () => {
    const other = await fixture.another();
    const attempts = Array.from({ length: 8 }, (_, index) =>
      (index % 2 === 0 ? fixture.store : other).putSource(`m${index}`, settingsOf('managed'), allowed),
    );
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    for (const outcome of outcomes) {
      if (outcome.status === 'rejected')
        expect(outcome.reason).toMatchObject({ code: 'store/managed-exists' });
    }
  });

  test('hands new claims on to the entries of a synchronised source at once', async () => {
    await fixture.store.putSource('made', settingsOf('file', ACME), allowed);
    await fixture.store.replaceEntries(replacementOf('made', [serverOf('a/a', { '1': '{}' })], 'T1'));
    await fixture.store.putSource('made', settingsOf('file', OTHER), allowed);
    expect(await fixture.store.readEntries('made')).toMatchObject([{ name: 'a/a', claims: OTHER }]);
  });
}

function deletesSources(fixture: Fixture): void {
  test('deletes a source with its entries and its status', async () => {
    await fixture.store.putSource('made', settingsOf('file'), allowed);
    await fixture.store.replaceEntries(replacementOf('made', [serverOf('a/a', { '1': '{}' })], 'T1'));
    const { value } = await fixture.store.deleteSource('made', allowed);
    expect(value).toMatchObject({ name: 'made', creationType: 'API' });
    expect(await fixture.store.readSource('made')).toBeUndefined();
    expect(await fixture.store.readEntries('made')).toEqual([]);
    expect(await fixture.store.readStatus('made')).toBeUndefined();
  });

  test('tells the decision which registries list it, and refuses even if the decision does not', async () => {
    await fixture.store.putRegistry('also', { sources: ['one'], claims: '' }, allowed);
    let seen: readonly string[] = [];
    const attempt = fixture.store.deleteSource('one', ({ referencedBy }) => {
      seen = referencedBy;
    });
    await expect(attempt).rejects.toMatchObject({
      code: 'store/source-in-use',
      message: 'source is referenced by one or more registries: one is referenced by 2 registry(ies)',
    });
    expect(seen).toEqual(['all', 'also']);
    await expect(fixture.store.deleteSource('nobody', allowed)).rejects.toMatchObject({
      code: 'store/source-unknown',
    });
  });
}

function putsRegistries(fixture: Fixture): void {
  test('creates a registry with its sources in order, then replaces them', async () => {
    const { store, clock } = fixture;
    const createdAt = utcTime(clock);
    const created = await store.putRegistry('mine', { sources: ['two', 'one'], claims: ACME }, allowed);
    expect(created.value).toEqual({
      created: true,
      registry: {
        name: 'mine',
        sources: ['two', 'one'],
        claims: ACME,
        creationType: 'API',
        createdAt,
        updatedAt: createdAt,
      },
    });
    clock.pass(1000);
    await store.putRegistry('mine', { sources: ['one'], claims: '' }, allowed);
    expect(await store.readRegistry('mine')).toMatchObject({ sources: ['one'], claims: '', createdAt });
    expect((await store.listRegistries()).map(({ name, sources }) => [name, sources])).toEqual([
      ['all', ['two', 'one']],
      ['mine', ['one']],
    ]);
  });

  test('shows the decision the sources that exist, and refuses others', async () => {
    let claims: unknown;
    const attempt = fixture.store.putRegistry(
      'mine',
      { sources: ['two', 'three'], claims: '' },
      ({ sources }) => {
        claims = [...sources].map(([name, source]) => [name, source.claims]);
      },
    );
    await expect(attempt).rejects.toMatchObject({
      code: 'store/source-unknown',
      message: 'source not found: three',
    });
    expect(claims).toEqual([['two', ACME]]);
    expect(await fixture.store.readRegistry('mine')).toBeUndefined();
  });

  test('never links a source that is deleted at the same time', async () => {
    const other = await fixture.another();
    for (let round = 0; round < 5; round++) {
      const name = `made${round}`;
      await fixture.store.putSource(name, settingsOf('file'), allowed);
      const [deleted, linked] = await Promise.allSettled([
        fixture.store.deleteSource(name, allowed),
        other.putRegistry(`of-${name}`, { sources: [name], claims: '' }, allowed),
      ]);
      expect([deleted.status, linked.status].toSorted()).toEqual(['fulfilled', 'rejected']);
      for (const outcome of [deleted, linked]) {
        if (outcome.status === 'fulfilled') continue;
        expect(['store/source-in-use', 'store/source-unknown']).toContain(outcome.reason.code);
      }
    }
  });
}

function deletesRegistries(fixture: Fixture): void {
  test('deletes a registry and leaves its sources', async () => {
    await fixture.store.putRegistry('mine', { sources: ['one'], claims: '' }, allowed);
    await fixture.store.deleteRegistry('mine', allowed);
    expect(await fixture.store.readRegistry('mine')).toBeUndefined();
    expect(await fixture.store.readSource('one')).toBeDefined();
    await expect(fixture.store.deleteRegistry('mine', allowed)).rejects.toMatchObject({
      code: 'registry/unknown-registry',
    });
    const refused = fixture.store.deleteRegistry('all', (existing) => {
      if (existing?.creationType === 'CONFIG') throw new SkepError('access/config-created');
    });
    await expect(refused).rejects.toMatchObject({ code: 'access/config-created' });
    expect(await fixture.store.readRegistry('all')).toBeDefined();
  });
}

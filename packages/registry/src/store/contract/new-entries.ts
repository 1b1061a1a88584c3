import { SkepError } from '@skep/core/errors/skep-error.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { DecideOnPublish } from '../decisions.ts';
import type { NewVersion } from '../rows.ts';
import type { Store } from '../store.ts';
import { ACME, allowed, type Fixture, outline, publishOf, sourceOf } from './fixture.ts';

const DOOR = 'door';

/** As the API publishes what it does not serve: the caller says that it seems new, and may be mistaken. */
function publish(store: Store, name: string, version: string, decide: DecideOnPublish = allowed) {
  return store.publish({ ...publishOf(name, version), registry: DOOR, seemsNew: true }, decide);
}

const onlyAnOpenSignIn: DecideOnPublish = ({ registry }) => {
  if (registry?.claims !== '') throw new SkepError('access/insufficient-claims');
};

export function newEntries(fixture: Fixture): void {
  const door = (store: Store, claims: string) =>
    store.reconcile({
      sources: [sourceOf('internal', 'managed')],
      registries: [{ name: DOOR, sources: ['internal'], claims }],
    });
  const stored = async () => outline(await fixture.store.readEntries('internal'));

  describe('entries that seem new', () => {
    beforeEach(async () => {
      await door(fixture.store, '');
      await publish(fixture.store, 'first', '1');
    });
    judgesAnew(fixture, door);
    storesAll(fixture);

    test('are found where another process has published them meanwhile', async () => {
      const other = await fixture.another();
      await publish(other, 'a/a', '1');
      const again = publish(fixture.store, 'a/a', '1');
      await expect(again).rejects.toMatchObject({ code: 'access/version-exists' });
      await publish(fixture.store, 'a/a', '2');
      expect(await stored()).toEqual(['server a/a@1,2', 'server first@1']);
    });

    test('are told to everybody with the revision after the one before', async () => {
      const one = await publish(fixture.store, 'a/a', '1');
      const two = await publish(fixture.store, 'b/b', '1');
      expect(two.revision).toBe(one.revision + 1);
      expect(await fixture.store.changesSince(one.revision)).toMatchObject({
        revision: two.revision,
        entries: [{ source: 'internal', kind: 'server', namespace: '', name: 'b/b' }],
      });
    });

    test('are accepted once, from however many at the same time', async () => {
      const other = await fixture.another();
      const attempts = Array.from({ length: 30 }, (_, index) =>
        publish(index % 2 === 0 ? fixture.store : other, 'a/a', String(index % 3)),
      );
      const outcomes = await Promise.allSettled(attempts);
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(3);
      const refusals = outcomes.flatMap((outcome) =>
        outcome.status === 'rejected' ? outcome.reason.code : [],
      );
      expect(new Set(refusals)).toEqual(new Set(['access/version-exists']));
      expect(await stored()).toEqual(['server a/a@0,1,2', 'server first@1']);
    });

    test('are never lost to a delete of the last version before, in another process', async () => {
      const other = await fixture.another();
      const address = { kind: 'server', namespace: '', name: 'a/a' } as const;
      await publish(other, 'a/a', '0');
      for (let version = 1; version <= 10; version += 1) {
        await Promise.all([
          publish(fixture.store, 'a/a', String(version)),
          other.deleteVersion(address, String(version - 1), ([entry]) => {
            if (entry === undefined) throw new SkepError('registry/not-found');
            return entry;
          }),
        ]);
        expect(await stored()).toEqual([`server a/a@${version}`, 'server first@1']);
      }
    });
  });
}

/** The process knows what it found last; another one has changed it since. */
function judgesAnew(fixture: Fixture, door: (store: Store, claims: string) => Promise<unknown>): void {
  test('are refused where another process has just closed the door', async () => {
    await door(await fixture.another(), ACME);
    const attempt = publish(fixture.store, 'a/a', '1', onlyAnOpenSignIn);
    await expect(attempt).rejects.toMatchObject({ code: 'access/insufficient-claims' });
    expect(await fixture.store.findManaged({ kind: 'server', namespace: '', name: 'a/a' })).toEqual([]);
  });

  test('are accepted where another process has just opened it', async () => {
    await door(fixture.store, ACME);
    await publish(fixture.store, 'second', '1');
    await door(await fixture.another(), '');
    const { value } = await publish(fixture.store, 'a/a', '1', onlyAnOpenSignIn);
    expect(value).toMatchObject({ name: 'a/a', versions: ['1'] });
  });

  test('are refused where another process has just taken the managed source away', async () => {
    const other = await fixture.another();
    await other.reconcile({ sources: [], registries: [] });
    const attempt = publish(fixture.store, 'a/a', '1');
    await expect(attempt).rejects.toMatchObject({ code: 'access/no-managed-source' });
  });
}

/** A single one has a statement of its own in some stores. */
function storesAll(fixture: Fixture): void {
  test('are stored with all that they have, alone and at once with others', async () => {
    const version: NewVersion = {
      version: '1',
      title: 'Ö "1"',
      description: "it's {a}, \\ or null",
      document: '{"text":"\\u0000, \\\\ and \u2028"}',
      official: '{"status":"active"}',
    };
    const about = { kind: 'plugin', namespace: 'n', claims: ACME } as const;
    const add = (name: string) =>
      fixture.store.publish({ ...about, name, version, registry: DOOR, seemsNew: true }, allowed);
    const { value } = await add('alone');
    await Promise.all([add('one'), add('other')]);
    expect(value).toMatchObject({ ...about, name: 'alone', version });
    const plugins = (await fixture.store.readEntries('internal')).filter(({ kind }) => kind === 'plugin');
    const versions = [value.version];
    expect(plugins).toEqual(['alone', 'one', 'other'].map((name) => ({ ...about, name, versions })));
  });
}

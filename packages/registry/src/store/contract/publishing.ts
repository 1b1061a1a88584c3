import { utcTime } from '@skep/core/time/clock.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { beforeEach, describe, expect, test } from 'vitest';
import type { DecideOnPublish, PickEntry, PublishRequest } from '../decisions.ts';
import { ACME, allowed, type Fixture, OTHER, outline, publishOf, sourceOf } from './fixture.ts';

/** The integrity rules of publishing, as the API enforces them. */
const rulesFor =
  ({ claims, version }: PublishRequest): DecideOnPublish =>
  ({ target, entry }) => {
    if (target === undefined) throw new SkepError('access/no-managed-source');
    if (entry !== undefined && entry.claims !== claims) throw new SkepError('access/claims-mismatch');
    if (entry?.versions.includes(version.version)) throw new SkepError('access/version-exists');
  };

const only: PickEntry = ([entry, second]) => {
  if (entry === undefined) throw new SkepError('registry/not-found');
  if (second !== undefined) throw new SkepError('registry/bad-request', { message: 'more than one' });
  return entry;
};

export function publishing(fixture: Fixture): void {
  const publish = (request: PublishRequest) => fixture.store.publish(request, rulesFor(request));
  describe('published entries', () => {
    beforeEach(() =>
      fixture.store.reconcile({
        sources: [sourceOf('internal', 'managed', OTHER), sourceOf('one')],
        registries: [],
      }),
    );
    publishes(fixture, publish);
    publishesAtOnce(fixture, publish);
    mixes(fixture, publish);
    deletes(fixture, publish);
    marks(fixture, publish);
    relabels(fixture, publish);
  });
}

type Publish = (request: PublishRequest) => ReturnType<Fixture['store']['publish']>;

function publishes(fixture: Fixture, publish: Publish): void {
  test('adds a version with the time, and tells where it went', async () => {
    await publish(publishOf('a/a', '1', ACME));
    fixture.clock.pass(1000);
    const { value } = await publish(publishOf('a/a', '2', ACME));
    const now = utcTime(fixture.clock);
    expect(value).toMatchObject({
      source: 'internal',
      name: 'a/a',
      claims: ACME,
      version: { version: '2', document: '{"version":"2"}', createdAt: now, updatedAt: now },
    });
    expect(value.versions.toSorted()).toEqual(['1', '2']);
    const stored = await fixture.store.readEntries('internal');
    expect(outline(stored)).toEqual(['server a/a@1,2']);
    expect(stored[0]?.versions[1]).toEqual(value.version);
  });

  test('shows the decision what there is, and writes nothing when it refuses', async () => {
    const seen: unknown[] = [];
    await publish(publishOf('a/a', '1', ACME));
    const { revision } = await fixture.store.changesSince(0);
    const attempt = fixture.store.publish(publishOf('a/a', '2'), (facts) => {
      seen.push(facts);
      throw new SkepError('access/claims-mismatch');
    });
    await expect(attempt).rejects.toMatchObject({ code: 'access/claims-mismatch' });
    expect(seen).toEqual([
      {
        target: expect.objectContaining({ name: 'internal', kind: 'managed', claims: OTHER }),
        entry: { kind: 'server', namespace: '', name: 'a/a', claims: ACME, versions: ['1'] },
      },
    ]);
    expect(await fixture.store.changesSince(revision)).toMatchObject({ revision });
  });

  test('refuses when there is no managed source, whatever the decision says', async () => {
    await fixture.store.reconcile({ sources: [sourceOf('one')], registries: [] });
    const attempt = fixture.store.publish(publishOf('a/a', '1'), allowed);
    await expect(attempt).rejects.toMatchObject({ code: 'access/no-managed-source' });
  });

  test('keeps what was published, with its claims, when the file is reconciled again with other claims', async () => {
    await publish(publishOf('a/a', '1', ACME));
    const sources = [sourceOf('internal', 'managed', ACME), sourceOf('one')];
    await fixture.store.reconcile({ sources, registries: [] });
    await publish(publishOf('b/b', '1'));
    await fixture.store.reconcile({ sources, registries: [] });
    expect((await fixture.store.readEntries('internal')).map(({ name, claims }) => [name, claims])).toEqual([
      ['a/a', ACME],
      ['b/b', ''],
    ]);
  });
}

function publishesAtOnce(fixture: Fixture, publish: Publish): void {
  test('accepts one of many who publish the same version at the same time', async () => {
    const other = await fixture.another();
    const request = publishOf('a/a', '1');
    const attempts = Array.from({ length: 30 }, (_, index) =>
      (index % 2 === 0 ? fixture.store : other).publish(request, rulesFor(request)),
    );
    const outcomes = await Promise.allSettled(attempts);
    expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
    const refusals = outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));
    expect(new Set(refusals.map(({ code }) => code))).toEqual(new Set(['access/version-exists']));
  });

  test('never mixes claims when versions of one name come from everywhere', async () => {
    const other = await fixture.another();
    const attempts = Array.from({ length: 30 }, (_, index) => {
      const request = publishOf('a/a', String(index), index % 3 === 0 ? ACME : OTHER);
      return (index % 2 === 0 ? fixture.store : other).publish(request, rulesFor(request));
    });
    const outcomes = await Promise.allSettled(attempts);
    const accepted = outcomes.flatMap((outcome) => (outcome.status === 'fulfilled' ? [outcome.value] : []));
    const [entry] = await fixture.store.readEntries('internal');
    expect(new Set(accepted.map(({ value }) => value.claims))).toEqual(new Set([entry?.claims]));
    expect(entry?.versions).toHaveLength(accepted.length);
    expect([10, 20]).toContain(accepted.length);
  });

  test('is not held up by refusals and failures beside it', async () => {
    await publish(publishOf('taken', '1'));
    const broken = publishOf('broken', '1');
    const outcomes = await Promise.allSettled([
      publish(publishOf('good', '1')),
      publish(publishOf('taken', '1')),
      // The database refuses the kind in the middle of the transaction that they share.
      fixture.store.publish({ ...broken, kind: JSON.parse('"robot"') }, allowed),
      publish(publishOf('good', '2')),
    ]);
    expect(
      outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.code : 'stored')),
    ).toEqual(['stored', 'access/version-exists', 'store/failed', 'stored']);
    expect(outline(await fixture.store.readEntries('internal'))).toEqual([
      'server good@1,2',
      'server taken@1',
    ]);
  });
}

/** What arrives together shares a transaction and is done in order. */
function mixes(fixture: Fixture, publish: Publish): void {
  const skill = (namespace: string, version = '1'): PublishRequest => ({
    ...publishOf('triage', version),
    kind: 'skill',
    namespace,
  });

  test('does what arrives together in its order, each seeing what came before', async () => {
    const { store } = fixture;
    const address = { kind: 'server', namespace: '', name: 'a/a' } as const;
    await publish(publishOf('b/b', '1'));
    const seen: unknown[] = [];
    await Promise.all([
      publish(publishOf('a/a', '1', ACME)),
      publish(publishOf('a/a', '2', ACME)),
      store.deleteVersion(address, '1', only),
      store.setEntryClaims({ ...address, name: 'b/b' }, OTHER, only),
      publish(publishOf('b/b', '2', OTHER)),
      store.deleteVersion(address, '2', only),
      store.publish(publishOf('a/a', '3', OTHER), ({ entry }) => void seen.push(entry)),
    ]);
    expect(seen).toEqual([undefined]);
    const stored = await store.readEntries('internal');
    expect(outline(stored)).toEqual(['server a/a@3', 'server b/b@1,2']);
    expect(stored.map(({ claims }) => claims)).toEqual([OTHER, OTHER]);
  });

  test('tells names of several kinds and namespaces apart that arrive together', async () => {
    const { store } = fixture;
    const bare = { kind: 'skill', name: 'triage' } as const;
    await publish(skill('io.acme'));
    const outcomes = await Promise.allSettled([
      publish(skill('io.acme', '2')),
      publish(publishOf('triage', '1')),
      store.deleteVersion(bare, '1', only),
      publish(skill('io.other')),
      store.deleteVersion(bare, '2', only),
    ]);
    expect(
      outcomes.map((outcome) => (outcome.status === 'rejected' ? outcome.reason.message : 'done')),
    ).toEqual(['done', 'done', 'done', 'done', 'more than one']);
    expect(outline(await store.readEntries('internal'))).toEqual([
      'server triage@1',
      'skill io.acme/triage@2',
      'skill io.other/triage@1',
    ]);
  });
}

function marks(fixture: Fixture, publish: Publish): void {
  const address = { kind: 'server', namespace: '', name: 'a/a' } as const;
  const mark = { status: 'deprecated', message: 'use b/b' } as const;

  test('marks one version or all of them, and leaves documents and times of publishing alone', async () => {
    const { store } = fixture;
    for (const version of ['1', '2']) await publish(publishOf('a/a', version, ACME));
    const before = await store.readEntries('internal');
    const one = await store.markVersions({ address, version: '2', mark }, only);
    expect(one.value).toMatchObject({ source: 'internal', marked: [{ version: '2' }] });
    const [entry] = await store.readEntries('internal');
    expect(entry?.versions.map(({ official }) => JSON.parse(official ?? 'null')?.status)).toEqual([
      undefined,
      'deprecated',
    ]);
    const all = await store.markVersions({ address, mark: { status: 'deleted' } }, only);
    expect(all.value.marked.map(({ version }) => version).toSorted()).toEqual(['1', '2']);
    const [after] = await store.readEntries('internal');
    const kept = (one: typeof after) => one?.versions.map(({ document, createdAt }) => [document, createdAt]);
    expect(kept(after)).toEqual(kept(before[0]));
    expect((await store.changesSince(one.revision)).revision).toBe(all.revision);
  });

  test('refuses a version that is not there, and what the decision refuses', async () => {
    const { store } = fixture;
    await publish(publishOf('a/a', '1', ACME));
    await expect(store.markVersions({ address, version: '9', mark }, only)).rejects.toMatchObject({
      code: 'registry/not-found',
    });
    const refuse = (): never => {
      throw new Error('refused');
    };
    await expect(store.markVersions({ address, mark }, refuse)).rejects.toThrow('refused');
    const [entry] = await store.readEntries('internal');
    expect(entry?.versions[0]?.official).toBe(null);
  });
}

function deletes(fixture: Fixture, publish: Publish): void {
  const address = { kind: 'server', namespace: '', name: 'a/a' } as const;

  test('deletes a version, and with the last one the entry and its claims', async () => {
    await publish(publishOf('a/a', '1', ACME));
    await publish(publishOf('a/a', '2', ACME));
    const { value } = await fixture.store.deleteVersion(address, '2', only);
    expect(value).toMatchObject({ source: 'internal', entry: { name: 'a/a', claims: ACME } });
    expect(outline(await fixture.store.readEntries('internal'))).toEqual(['server a/a@1']);
    await fixture.store.deleteVersion(address, '1', only);
    expect(await fixture.store.findManaged(address)).toEqual([]);
    await publish(publishOf('a/a', '1', OTHER));
    expect(await fixture.store.findManaged(address)).toEqual([
      { ...address, claims: OTHER, versions: ['1'] },
    ]);
  });

  test('deletes what the decision chose, and refuses what it refuses or what is not there', async () => {
    await publish({ ...publishOf('triage', '1'), kind: 'skill', namespace: 'io.acme' });
    await publish({ ...publishOf('triage', '1'), kind: 'skill', namespace: 'io.other' });
    const bare = { kind: 'skill', name: 'triage' } as const;
    const attempt = fixture.store.deleteVersion(bare, '1', only);
    await expect(attempt).rejects.toMatchObject({ message: 'more than one' });
    const chosen: PickEntry = (found) => only(found.filter(({ namespace }) => namespace === 'io.other'));
    await fixture.store.deleteVersion(bare, '1', chosen);
    expect(outline(await fixture.store.readEntries('internal'))).toEqual(['skill io.acme/triage@1']);
    await expect(fixture.store.deleteVersion(bare, '2', only)).rejects.toMatchObject({
      code: 'registry/not-found',
      message: '"triage" has no version "2"',
    });
    await expect(fixture.store.deleteVersion(address, '1', only)).rejects.toMatchObject({
      code: 'registry/not-found',
    });
  });
}

function relabels(fixture: Fixture, publish: Publish): void {
  test('replaces the claims of an entry for all its versions', async () => {
    const address = { kind: 'server', name: 'a/a' } as const;
    await publish(publishOf('a/a', '1', ACME));
    await publish(publishOf('a/a', '2', ACME));
    const { revision } = await fixture.store.setEntryClaims(address, OTHER, only);
    expect(await fixture.store.readEntries('internal')).toMatchObject([{ name: 'a/a', claims: OTHER }]);
    const unchanged = await fixture.store.setEntryClaims(address, OTHER, only);
    expect(unchanged).toMatchObject({ revision, value: { claims: OTHER } });
    const refused = fixture.store.setEntryClaims(address, ACME, (found) => {
      if (only(found).claims === OTHER) throw new SkepError('access/insufficient-claims');
      return only(found);
    });
    await expect(refused).rejects.toMatchObject({ code: 'access/insufficient-claims' });
  });
}

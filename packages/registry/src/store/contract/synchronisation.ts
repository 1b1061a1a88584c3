import { beforeEach, describe, expect, test } from 'vitest';
import type { NewEntry, StoredEntry } from '../rows.ts';
import {
  ACME,
  type Fixture,
  OTHER,
  outline,
  replacementOf,
  serverOf,
  sourceOf,
  statusAt,
  versionOf,
} from './fixture.ts';

const LEASE = { source: 'one', owner: 'a' };

export function synchronisation(fixture: Fixture): void {
  describe('synchronised entries', () => {
    beforeEach(async () => {
      const sources = [sourceOf('one'), sourceOf('two'), sourceOf('cluster', 'kubernetes')];
      await fixture.store.reconcile({ sources, registries: [] });
    });
    keepsContent(fixture);
    replaces(fixture);
    visits(fixture);
    keepsClaims(fixture);
    staysConsistent(fixture);
    keepsStatus(fixture);
    leases(fixture);
    staleLooks(fixture);
  });
}

function keepsContent(fixture: Fixture): void {
  test('keeps documents byte for byte, and shows them to others', async () => {
    const document =
      '{"name":"a/a","big":12345678901234567890,"z":1.0,"a":"\\u0000é 🐝","__proto__":{"x":1}}';
    const entry = serverOf('a/a', { '1.0.0': document });
    const { value: stored } = await fixture.store.replaceEntries(replacementOf('one', [entry], 'T1'));
    const other = await fixture.another();
    expect(await other.readEntries('one')).toEqual(stored);
    expect(stored[0]?.versions[0]?.document).toBe(document);
  });

  test('keeps every column of each of many entries', async () => {
    const entries = Array.from({ length: 250 }, (_, index): NewEntry => {
      const text = String(index);
      const official = index % 3 === 0 ? null : `{"o":${text}}`;
      const content = { title: index % 2 === 0 ? null : `t${text}`, description: `d${text}`, official };
      const version = { ...versionOf(`1.${text}`), ...content, document: `{"n":${text}}` };
      return { ...serverOf(`a/${text}`, {}), versions: [version] };
    });
    const { value: stored } = await fixture.store.replaceEntries(replacementOf('one', entries, 'T1'));
    const read = await fixture.store.readEntries('one');
    const byName = (list: readonly NewEntry[]) => Object.fromEntries(list.map((each) => [each.name, each]));
    expect(byName(read)).toEqual(byName(stored));
    expect(byName(read)).toMatchObject(byName(entries));
  });

  test('stores a title with U+0000, which not every database can hold', async () => {
    const entry = { ...serverOf('a/a', {}), versions: [{ ...versionOf('1'), title: 'a\0b' }] };
    await fixture.store.replaceEntries(replacementOf('one', [entry], 'T1'));
    expect((await fixture.store.readEntries('one'))[0]?.versions[0]?.title).toBe('a\u{FFFD}b');
  });

  test('orders entries by kind, namespace and name, and versions, by their bytes', async () => {
    const skill = (namespace: string): NewEntry => ({
      ...serverOf('b', { '1': '{}' }),
      kind: 'skill',
      namespace,
    });
    const servers = ['é', 'z', 'a-b', 'a_b', 'aB', 'ab'].map((name) =>
      serverOf(name, { '2': '{}', '10': '{}' }),
    );
    await fixture.store.replaceEntries(
      replacementOf('one', [skill('io.z'), ...servers, skill('io.acme')], 'T1'),
    );
    expect(outline(await fixture.store.readEntries('one'))).toEqual([
      ...['a-b', 'aB', 'a_b', 'ab', 'z', 'é'].map((name) => `server ${name}@10,2`),
      'skill io.acme/b@1',
      'skill io.z/b@1',
    ]);
  });
}

function replaces(fixture: Fixture): void {
  test('replaces entries and versions, keeps times of what stays, and leaves other sources alone', async () => {
    await fixture.store.replaceEntries(replacementOf('two', [serverOf('a/a', { '1': '{}' })], 'T1'));
    const first = [serverOf('a/a', { '1': '{}', '2': '{}', '4': '{}' }), serverOf('b/b', { '1': '{}' })];
    await fixture.store.replaceEntries(replacementOf('one', first, 'T1'));
    const next = [serverOf('a/a', { '2': '{"x":1}', '3': '{}', '4': '{}' }), serverOf('c/c', { '1': '{}' })];
    const { value: stored } = await fixture.store.replaceEntries(replacementOf('one', next, 'T2'));
    expect(await fixture.store.readEntries('one')).toEqual(stored);
    expect(
      stored.map(({ name, versions }) => [
        name,
        versions.map(({ version, createdAt, updatedAt }) => `${version} ${createdAt} ${updatedAt}`),
      ]),
    ).toEqual([
      ['a/a', ['2 T1 T2', '3 T2 T2', '4 T1 T1']],
      ['c/c', ['1 T2 T2']],
    ]);
    expect(outline(await fixture.store.readEntries('two'))).toEqual(['server a/a@1']);
  });

  test('tells kinds and namespaces of the same name apart, and reads some of them', async () => {
    const skill = (namespace: string): NewEntry => ({
      ...serverOf('triage', { '1': '{}' }),
      kind: 'skill',
      namespace,
    });
    const entries = [serverOf('triage', { '1': '{}' }), skill('io.acme'), skill('io.other')];
    await fixture.store.replaceEntries(replacementOf('one', entries, 'T1'));
    const some = [
      { kind: 'skill', namespace: 'io.other', name: 'triage' },
      { kind: 'plugin', namespace: '', name: 'triage' },
      { kind: 'server', namespace: '', name: 'triage' },
    ] as const;
    expect(outline(await fixture.store.readSomeEntries('one', some))).toEqual([
      'server triage@1',
      'skill io.other/triage@1',
    ]);
    expect(await fixture.store.readSomeEntries('one', [])).toEqual([]);
  });

  test('writes thousands of entries of several sources at the same time', async () => {
    const many = (prefix: string): NewEntry[] =>
      Array.from({ length: 1000 }, (_, index) => serverOf(`${prefix}/${index}`, { '1': '{}' }));
    await Promise.all([
      fixture.store.replaceEntries(replacementOf('one', many('a'), 'T1')),
      fixture.store.replaceEntries(replacementOf('two', many('b'), 'T1')),
    ]);
    expect(await fixture.store.readEntries('one')).toHaveLength(1000);
    expect(await fixture.store.readEntries('two')).toHaveLength(1000);
  });

  test('refuses a source that is not there', async () => {
    const attempt = fixture.store.replaceEntries(replacementOf('three', [], 'T1'));
    await expect(attempt).rejects.toMatchObject({
      code: 'store/source-unknown',
      message: 'source not found: three',
    });
  });
}

function visits(fixture: Fixture): void {
  test('hands on entries of many versions one after the other, as they were at one moment', async () => {
    const numbers = (count: number) => Array.from({ length: count }, (_, index) => String(1000 + index));
    const all = (document: string): NewEntry[] => {
      const versions = Object.fromEntries(numbers(300).map((version) => [`v${version}`, document]));
      return numbers(15).map((name) => serverOf(name, versions));
    };
    const { value: before } = await fixture.store.replaceEntries(replacementOf('one', all('{}'), 'T1'));
    const other = await fixture.another();
    const visited: StoredEntry[] = [];
    const [{ value: after }] = await Promise.all([
      fixture.store.replaceEntries(replacementOf('one', all('{"x":1}'), 'T2')),
      other.visitEntries('one', (entry) => visited.push(entry)),
    ]);
    expect(visited).toEqual(visited[0]?.versions[0]?.updatedAt === 'T1' ? before : after);
    expect(await other.readEntries('one')).toEqual(after);
  });
}

function keepsClaims(fixture: Fixture): void {
  test('gives entries of a synchronised source the claims that the source has now', async () => {
    const sources = [sourceOf('one', 'file', ACME)];
    await fixture.store.reconcile({ sources, registries: [] });
    await fixture.store.replaceEntries(replacementOf('one', [serverOf('a/a', { '1': '{}' }, OTHER)], 'T1'));
    expect((await fixture.store.readEntries('one'))[0]?.claims).toBe(ACME);
    await fixture.store.reconcile({ sources: [sourceOf('one', 'file', OTHER)], registries: [] });
    expect((await fixture.store.readEntries('one'))[0]?.claims).toBe(OTHER);
  });

  test('leaves the claims of entries of other kinds as they were given, also when those of the source change', async () => {
    const entries = [serverOf('a/a', { '1': '{}' }, OTHER), serverOf('b/b', { '1': '{}' })];
    await fixture.store.replaceEntries(replacementOf('cluster', entries, 'T1'));
    const sources = [sourceOf('cluster', 'kubernetes', ACME)];
    await fixture.store.reconcile({ sources, registries: [] });
    expect((await fixture.store.readEntries('cluster')).map(({ claims }) => claims)).toEqual([OTHER, '']);
  });
}

function staysConsistent(fixture: Fixture): void {
  test('changes nothing when a replacement fails half-way', async () => {
    await fixture.store.replaceEntries(replacementOf('one', [serverOf('a/a', { '1': '{}' })], 'T1'));
    const before = await fixture.store.readEntries('one');
    const { revision } = await fixture.store.changesSince(0);
    // The same version twice, to make a statement in the middle fail.
    const twice = { ...serverOf('b/b', {}), versions: serverOf('', { '1': '{}' }).versions };
    const broken = replacementOf(
      'one',
      [serverOf('c/c', { '1': '{}' }), twice, { ...twice, kind: JSON.parse('"robot"') }],
      'T2',
    );
    await expect(fixture.store.replaceEntries(broken)).rejects.toMatchObject({ code: 'store/failed' });
    expect(await fixture.store.readEntries('one')).toEqual(before);
    expect(await fixture.store.readStatus('one')).toMatchObject({ lastSync: 'T1' });
    expect(await fixture.store.changesSince(revision)).toMatchObject({ revision, sources: [] });
  });

  test('answers a ping while open and fails it when closed; closing twice is fine', async () => {
    const store = await fixture.another();
    await expect(store.ping()).resolves.toBeUndefined();
    await store.close();
    await store.close();
    await expect(store.ping()).rejects.toMatchObject({ code: expect.stringMatching(/^store\//) });
    await expect(store.replaceEntries(replacementOf('one', [], 'T1'))).rejects.toMatchObject({
      code: 'store/failed',
    });
  });
}

function keepsStatus(fixture: Fixture): void {
  test('knows the status of every source from the moment it exists', async () => {
    const statuses = await fixture.store.readStatuses();
    expect([...statuses].map(([name, { phase, message }]) => [name, phase, message])).toEqual([
      ['cluster', 'complete', 'Non-synced source (type: kubernetes)'],
      ['one', 'failed', 'No previous sync status found'],
      ['two', 'failed', 'No previous sync status found'],
    ]);
    expect(await fixture.store.readStatus('three')).toBeUndefined();
  });

  test('keeps a status as it was written, without counting it as a change', async () => {
    const { revision } = await fixture.store.changesSince(0);
    const status = {
      ...statusAt('T1'),
      phase: 'failed' as const,
      message: 'it "broke"',
      nextSync: 'T9',
      attemptCount: 3,
      changed: true,
      counts: { server: 1, skill: 2, plugin: 3 },
      filterHash: 'f',
      report: '{"skipped":[]}',
    };
    await fixture.store.writeStatus('one', status);
    await fixture.store.writeStatus('gone', status);
    expect(await fixture.store.readStatus('one')).toEqual(status);
    expect(await fixture.store.readStatus('gone')).toBeUndefined();
    expect(await fixture.store.changesSince(revision)).toMatchObject({ revision });
  });

  test('counts a replacement by the same content as no change', async () => {
    const entries = [serverOf('a/a', { '1': '{}' })];
    const { revision } = await fixture.store.replaceEntries(replacementOf('one', entries, 'T1'));
    const again = await fixture.store.replaceEntries(replacementOf('one', entries, 'T2'));
    expect(again.revision).toBe(revision);
    expect(await fixture.store.readStatus('one')).toMatchObject({ lastSync: 'T2' });
  });
}

function leases(fixture: Fixture): void {
  test('lets one owner at a time hold a lease, until it ends', async () => {
    const { store, clock } = fixture;
    const other = await fixture.another();
    const theirs = { ...LEASE, owner: 'b' };
    expect(await store.acquireLease(LEASE, 1000)).toBe(true);
    expect(await other.acquireLease(theirs, 1000)).toBe(false);
    clock.pass(999);
    expect(await other.acquireLease(theirs, 1000)).toBe(false);
    expect(await store.renewLease(LEASE, 1000)).toBe(true);
    clock.pass(999);
    expect(await other.acquireLease(theirs, 1000)).toBe(false);
    clock.pass(1);
    expect(await other.acquireLease(theirs, 1000)).toBe(true);
    expect(await store.renewLease(LEASE, 1000)).toBe(false);
    await store.releaseLease(LEASE);
    expect(await store.acquireLease(LEASE, 1000)).toBe(false);
    await other.releaseLease(theirs);
    expect(await store.acquireLease(LEASE, 1000)).toBe(true);
    expect(await store.acquireLease({ ...LEASE, source: 'two' }, 1000)).toBe(true);
  });

  test('gives a lease that many ask for at once to one of them', async () => {
    const other = await fixture.another();
    const asked = Array.from({ length: 20 }, (_, index) =>
      (index % 2 === 0 ? fixture.store : other).acquireLease({ source: 'one', owner: String(index) }, 1000),
    );
    expect((await Promise.all(asked)).filter(Boolean)).toHaveLength(1);
  });

  test('refuses what was fetched under a lease that somebody else has taken over', async () => {
    const { store, clock } = fixture;
    await store.acquireLease(LEASE, 1000);
    clock.pass(1000);
    await store.acquireLease({ ...LEASE, owner: 'b' }, 1000);
    const late = { ...replacementOf('one', [serverOf('a/a', { '1': '{}' })], 'T1'), lease: LEASE };
    await expect(store.replaceEntries(late)).rejects.toMatchObject({ code: 'store/lease-lost' });
    const status = statusAt('T1');
    await expect(store.writeStatus('one', status, LEASE)).rejects.toMatchObject({ code: 'store/lease-lost' });
    expect(await store.readEntries('one')).toEqual([]);
    expect(await store.readStatus('one')).toMatchObject({ phase: 'failed' });
    await store.writeStatus('one', status, { ...LEASE, owner: 'b' });
    expect(await store.readStatus('one')).toEqual(status);
    const inTime = { ...late, lease: { ...LEASE, owner: 'b' } };
    await expect(store.replaceEntries(inTime)).resolves.toMatchObject({ value: [{ name: 'a/a' }] });
  });
}

function staleLooks(fixture: Fixture): void {
  test('refuses what was fetched from a source that has changed in the meantime, or is made anew', async () => {
    const { store } = fixture;
    const late = { ...replacementOf('one', [serverOf('a/a', { '1': '{}' })], 'T1'), lease: LEASE };
    const changes = [
      [{ ...sourceOf('one'), filter: '{"names":{"exclude":["a/*"]}}' }],
      [sourceOf('one', 'managed')],
      [],
      [sourceOf('one')],
    ];
    for (const sources of changes) {
      await store.acquireLease(LEASE, 1000);
      await store.reconcile({ sources, registries: [] });
      await expect(store.replaceEntries(late)).rejects.toMatchObject({
        code: expect.stringMatching(/^store\//),
      });
      await expect(store.renewLease(LEASE, 1000)).resolves.toBe(false);
    }
    expect(await store.readEntries('one')).toEqual([]);
  });

  test('lets a look go on while only claims and interval change', async () => {
    const { store } = fixture;
    await store.acquireLease(LEASE, 1000);
    await store.reconcile({ sources: [{ ...sourceOf('one', 'file', ACME), interval: 7 }], registries: [] });
    const late = { ...replacementOf('one', [serverOf('a/a', { '1': '{}' })], 'T1'), lease: LEASE };
    await expect(store.replaceEntries(late)).resolves.toMatchObject({ value: [{ claims: ACME }] });
  });
}

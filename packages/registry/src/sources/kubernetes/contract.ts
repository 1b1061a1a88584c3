import { systemClock } from '@skep/core/time/clock.ts';
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import type { WatchSurroundings } from '../kind.ts';
import type { Following, WatchedSource, WatchedState } from '../watched-source.ts';
import { kubernetesKind } from './kubernetes-kind.ts';
import type { ObjectKindName } from './object-kinds.ts';

// What a cluster does to the source that follows it, whichever API server it is.

export interface TestObject {
  readonly kind: ObjectKindName;
  readonly namespace: string;
  readonly name: string;
  readonly annotations: Readonly<Record<string, string>>;
  readonly spec?: object;
}

export interface TestCluster {
  readonly kubeconfig: string;
  /** Creates an object, or replaces it. Namespaces `one` and `two` are there. */
  readonly put: (object: TestObject) => Promise<void>;
  readonly remove: (object: Pick<TestObject, 'kind' | 'namespace' | 'name'>) => Promise<void>;
  /** Their objects go with them. */
  readonly removeCustomKinds: () => Promise<void>;
  readonly restoreCustomKinds: () => Promise<void>;
  /** Cuts all watches, changes something that nobody hears, and forgets the versions until then. */
  readonly awayWhile: (change: () => Promise<void>) => Promise<void>;
  readonly close: () => Promise<void>;
}

/** An object that asks to be shown. */
export function exported(
  kind: ObjectKindName,
  at: string,
  annotations: Readonly<Record<string, string>> = {},
): TestObject {
  const [namespace = '', name = ''] = at.split('/');
  const own = {
    'skep.dev/registry-export': 'true',
    'skep.dev/registry-url': `https://${name.slice(0, 60)}.example/mcp`,
    'skep.dev/registry-description': `Serves ${name.slice(0, 60)}`,
    ...annotations,
  };
  const spec = kind === 'MCPServer' ? { spec: { image: 'ghcr.io/acme/tool:1.2.3', transport: 'stdio' } } : {};
  return { kind, namespace, name, annotations: own, ...spec };
}

/** What a configured source is, for tests: `settings` beside the kubeconfig, `more` in place of what surrounds it. */
export function watchedSource(
  kubeconfig: string,
  settings: object = {},
  more: Partial<WatchSurroundings> = {},
): WatchedSource {
  const place = kubernetesKind.read({ kubeconfig, ...settings });
  if ('fault' in place || place.watch === undefined) throw new TypeError(JSON.stringify(place));
  const { random } = Math;
  const usual = { env: {}, clock: systemClock, userAgent: 'skep-test', limits: DEFAULT_LIMITS, random };
  return place.watch({ ...usual, ...more });
}

/** A source that is followed, and what it has come to. */
export class Followed {
  readonly #following: Following;
  readonly #waiting: Set<() => void>;

  private constructor(following: Following, waiting: Set<() => void>) {
    this.#following = following;
    this.#waiting = waiting;
  }

  static async start(
    source: WatchedSource,
    before: Parameters<WatchedSource['follow']>[0]['before'] = [],
  ): Promise<Followed> {
    const waiting = new Set<() => void>();
    const changed = (): void => waiting.forEach((check) => check());
    return new Followed(await source.follow({ before, changed }), waiting);
  }

  get state(): WatchedState {
    return this.#following.state();
  }

  /** `namespace/name claims` of all that is shown, in order. */
  get shown(): string[] {
    return shownOf(this.state);
  }

  /** The state as soon as it is so. */
  async until(isSo: (state: WatchedState) => boolean, milliseconds = 50_000): Promise<WatchedState> {
    const { promise, resolve, reject } = Promise.withResolvers<WatchedState>();
    const check = (): void => {
      const { state } = this;
      if (isSo(state)) resolve(state);
    };
    const late = (): void => reject(new Error(`still ${JSON.stringify([this.shown, this.state.faults])}`));
    const timer = setTimeout(late, milliseconds);
    this.#waiting.add(check);
    // Not everything that tests wait for is told.
    const polling = setInterval(check, 50);
    check();
    return promise.finally(() => {
      clearTimeout(timer);
      clearInterval(polling);
      this.#waiting.delete(check);
    });
  }

  async untilShown(...expected: readonly string[]): Promise<void> {
    await this.until((state) => JSON.stringify(shownOf(state)) === JSON.stringify(expected));
  }

  close(): Promise<void> {
    return this.#following.close();
  }
}

function shownOf({ servers }: WatchedState): string[] {
  return servers
    .map(({ name, claims }) => `${name.replace('dev.skep.k8s.', '')} ${claims}`.trim())
    .toSorted();
}

const CLAIMS = 'skep.dev/authz-claims';

export function followsCluster(open: () => Promise<TestCluster>): void {
  const used = useCluster(open);
  showsWhatIsThere(used);
  missesNothing(used);
}

interface Used {
  readonly cluster: () => TestCluster;
  /** Makes an object, or changes it, that goes with the test. */
  readonly put: (object: TestObject) => Promise<void>;
  /** Resolves when everything was read once; ends with the test. */
  readonly follow: (settings?: object) => Promise<Followed>;
}

function useCluster(open: () => Promise<TestCluster>): Used {
  let cluster: TestCluster;
  let followed: Followed | undefined;
  const made: TestObject[] = [];
  beforeAll(async () => void (cluster = await open()), 120_000);
  afterAll(() => cluster.close());
  beforeEach(() => void (followed = undefined));
  afterEach(async () => {
    await followed?.close();
    for (const object of made.splice(0)) await cluster.remove(object);
  });
  return {
    cluster: () => cluster,
    put: async (object) => {
      made.push(object);
      await cluster.put(object);
    },
    follow: async (settings) => {
      followed = await Followed.start(watchedSource(cluster.kubeconfig, settings));
      await followed.until(({ isWhole }) => isWhole);
      return followed;
    },
  };
}

function showsWhatIsThere({ cluster, put, follow }: Used): void {
  test('shows exported objects of every kind in the namespaces that it names, each with its own claims', async () => {
    await put(exported('MCPServer', 'one/a', { [CLAIMS]: '{"team":["b","a"]}' }));
    await put(exported('VirtualMCPServer', 'one/b'));
    await put(exported('MCPRemoteProxy', 'two/c', { [CLAIMS]: '{"org":"acme"}' }));
    await put(exported('Service', 'two/d'));
    await put(exported('Deployment', 'two/e'));
    await put(exported('Service', 'three/f'));
    await put({
      ...exported('Service', 'one/g'),
      annotations: { 'skep.dev/registry-url': 'https://g.example' },
    });
    const { shown } = await follow({ namespaces: ['one', 'two'] });
    expect(shown).toEqual(['one/a {"team":["a","b"]}', 'one/b', 'two/c {"org":["acme"]}', 'two/d', 'two/e']);
  });

  test('follows what is made, changed, annotated anew and removed, and leaves other namespaces alone', async () => {
    await put(exported('Service', 'one/stays'));
    const changes = await follow();
    await put(exported('MCPServer', 'two/a', { [CLAIMS]: '{"org":"acme"}' }));
    await changes.untilShown('one/stays', 'two/a {"org":["acme"]}');
    await put(exported('MCPServer', 'two/a', { [CLAIMS]: '{"org":"other"}' }));
    await changes.untilShown('one/stays', 'two/a {"org":["other"]}');
    await put(exported('MCPServer', 'two/a', { [CLAIMS]: '{"org":' }));
    await changes.untilShown('one/stays');
    expect(changes.state.skipped).toEqual([
      { name: 'dev.skep.k8s.two/a', reason: 'authz-claims is not JSON' },
    ]);
    await put(exported('MCPServer', 'two/a', { [CLAIMS]: '{"org":"acme"}' }));
    await changes.untilShown('one/stays', 'two/a {"org":["acme"]}');
    await put(exported('MCPServer', 'two/a', { 'skep.dev/registry-export': 'false' }));
    await changes.untilShown('one/stays');
    await put(exported('MCPServer', 'two/b'));
    await changes.untilShown('one/stays', 'two/b');
    await cluster().remove({ kind: 'MCPServer', namespace: 'two', name: 'b' });
    await changes.untilShown('one/stays');
  });

  test('leaves out what has too long a name, and says so', async () => {
    const name = 'n'.repeat(230);
    await put(exported('Deployment', `one/${name}`));
    const { state } = await follow();
    expect(state.servers).toEqual([]);
    const reason = 'the name has 247 characters, at most 200 are allowed';
    expect(state.skipped).toEqual([{ name: `dev.skep.k8s.one/${name}`, reason }]);
  });
}

function missesNothing({ cluster, put, follow }: Used): void {
  test('hears of kinds that are removed and made anew, and keeps the others meanwhile', async () => {
    await put(exported('Service', 'one/stays'));
    await put(exported('MCPServer', 'one/goes'));
    const kinds = await follow();
    expect(kinds.shown).toEqual(['one/goes', 'one/stays']);
    await cluster().removeCustomKinds();
    await kinds.untilShown('one/stays');
    expect(kinds.state.faults).toEqual([]);
    await cluster().restoreCustomKinds();
    await put(exported('MCPServer', 'one/back'));
    await kinds.untilShown('one/back', 'one/stays');
  }, 60_000);

  test('misses nothing of what changed while it could not hear, though the cluster has forgotten it', async () => {
    await put(exported('Service', 'one/stays'));
    await put(exported('Service', 'one/goes'));
    const changes = await follow();
    await cluster().awayWhile(async () => {
      await cluster().remove({ kind: 'Service', namespace: 'one', name: 'goes' });
      await put(exported('Service', 'two/new', { [CLAIMS]: '{"org":"acme"}' }));
      expect(changes.shown).toEqual(['one/goes', 'one/stays']);
    });
    await changes.untilShown('one/stays', 'two/new {"org":["acme"]}');
    await changes.until(({ faults }) => faults.length === 0);
  }, 60_000);
}

import type { ServerResponse } from 'node:http';
import { writeFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { FakeApiServer, sendJson } from './api-server.fixture.ts';
import { exported, Followed, watchedSource } from './contract.ts';
import { systemClock } from '@skep/core/time/clock.ts';
import { DEFAULT_LIMITS } from '../../shape/limits.ts';
import type { StoredEntry } from '../../store/rows.ts';
import type { WatchSurroundings } from '../kind.ts';

// An API server that is slow, lies, or does not let this program in: what is known stays, and a line says why.

let cluster: FakeApiServer;
let followed: Followed | undefined;
beforeEach(async () => {
  cluster = await FakeApiServer.start();
  followed = undefined;
});
afterEach(async () => {
  await followed?.close();
  await cluster.close();
});

const SERVICES = { kinds: ['Service'] };

async function follow(
  settings: object = SERVICES,
  before: readonly StoredEntry[] = [],
  more: Partial<WatchSurroundings> = {},
): Promise<Followed> {
  followed = await Followed.start(watchedSource(cluster.kubeconfig, settings, more), before);
  await followed.until(({ isTried }) => isTried);
  return followed;
}

/** Ends every watch, so that the next request is made now. */
function answerAll(answer: (url: URL, response: ServerResponse) => boolean): void {
  cluster.intercept = (url, _, response) => answer(url, response);
}

const isWatch = (url: URL): boolean => url.searchParams.has('watch');

describe('a cluster that does not let it in', () => {
  test('is said in one line per part, and nothing is lost of that part', async () => {
    await cluster.put(exported('Service', 'one/a'));
    const parts = await follow({ kinds: ['Service', 'Deployment'] });
    await parts.untilShown('one/a');
    answerAll((url, response) => {
      if (!url.pathname.includes('services')) return false;
      const message = 'services is forbidden: User "skep" cannot list resource "services"';
      sendJson(response, 403, { kind: 'Status', message, code: 403 });
      return true;
    });
    await cluster.awayWhile(() => cluster.put(exported('Deployment', 'one/b')));
    const { faults } = await parts.until((state) => state.faults.length === 1 && state.servers.length === 2);
    expect(faults[0]).toMatch(/^services of all namespaces: .* 403: services is forbidden: User "skep"/);
    expect(parts.shown).toEqual(['one/a', 'one/b']);
    cluster.intercept = () => false;
    await parts.until((state) => state.faults.length === 0);
  });

  test('is polled where it may be listed and not watched, so that nothing stays wider than it is', async () => {
    const claimed = (claims: string) => exported('Service', 'one/a', { 'skep.dev/authz-claims': claims });
    await cluster.put(claimed('{"org":"everyone"}'));
    answerAll((url, response) => {
      if (isWatch(url)) sendJson(response, 403, { kind: 'Status', message: 'cannot watch', code: 403 });
      return isWatch(url);
    });
    const services = await follow();
    await services.untilShown('one/a {"org":["everyone"]}');
    await services.until(({ faults }) => faults[0]?.includes('cannot watch') === true);
    await cluster.put(claimed('{"org":"few"}'));
    await services.untilShown('one/a {"org":["few"]}');
    expect(services.state.faults[0]).toContain('cannot watch');
  });

  test('uses the next token as soon as it stands in the file', async () => {
    await cluster.put(exported('Service', 'one/a'));
    let valid = 'token-2';
    cluster.intercept = (_, request, response) => {
      if (request.headers.authorization === `Bearer ${valid}`) return false;
      sendJson(response, 401, { kind: 'Status', message: 'Unauthorized', code: 401 });
      return true;
    };
    const services = await follow();
    expect(services.state.faults[0]).toContain('401: Unauthorized');
    await cluster.writeKubeconfig('token-2');
    await services.untilShown('one/a');
    valid = 'token-3';
    await cluster.writeKubeconfig('token-3');
    await cluster.awayWhile(() => cluster.put(exported('Service', 'one/b')));
    await services.untilShown('one/a', 'one/b');
  });

  test.each([
    ['is missing', undefined, /^services of all namespaces: the kubeconfig cannot be read/],
    ['is no YAML', '{', /is no YAML map$/],
    ['runs a program', { user: { exec: { command: 'aws' } } }, /uses "exec", which is not supported$/],
    [
      'asks for a name',
      { user: { username: 'a', password: 'hunter2' } },
      /uses "username", which is not supported$/,
    ],
    [
      'sends its token in the clear',
      { cluster: { server: 'http://cluster.example' } },
      /would send its token over http/,
    ],
    [
      'has a token of two lines',
      { user: { token: 'a\nb' } },
      /the token for the cluster is empty or no token$/,
    ],
  ])('a kubeconfig that %s is a line, which holds no secret', async (_, change, expected) => {
    const config = {
      'current-context': 'x',
      contexts: [{ name: 'x', context: { cluster: 'x', user: 'x' } }],
      clusters: [{ name: 'x', cluster: { server: 'https://cluster.example' } }],
      users: [{ name: 'x', user: { token: 't' } }],
    };
    const { user, cluster: server } = typeof change === 'object' ? (change as Record<string, object>) : {};
    if (user !== undefined) Object.assign(config.users[0] ?? {}, { user });
    if (server !== undefined) Object.assign(config.clusters[0] ?? {}, { cluster: server });
    const text = typeof change === 'string' ? change : JSON.stringify(config);
    if (change !== undefined) await writeFile(cluster.kubeconfig, text);
    const kubeconfig = change === undefined ? `${cluster.kubeconfig}.none` : cluster.kubeconfig;
    followed = await Followed.start(watchedSource(kubeconfig, SERVICES));
    const { faults } = await followed.until((state) => state.faults.length > 0);
    expect(faults).toHaveLength(1);
    expect(faults[0]).toMatch(expected);
    expect(faults[0]).not.toContain('hunter2');
  });
});

describe('a cluster that is slow or lies', () => {
  test('keeps what the store has of parts that were never read, and only of those', async () => {
    await cluster.put(exported('Service', 'one/a'));
    const first = await follow({ kinds: ['Service', 'MCPServer'] });
    await first.untilShown('one/a');
    const [server] = first.state.servers;
    const version = {
      version: '1.0.0',
      title: null,
      description: '',
      official: null,
      createdAt: '',
      updatedAt: '',
    };
    const stored = (name: string, from: string, to: string): StoredEntry => ({
      kind: 'server',
      namespace: '',
      name,
      claims: '{"org":["acme"]}',
      versions: [{ ...version, document: (server?.json ?? '').replaceAll(from, to) }],
    });
    await first.close();
    answerAll((url, response) => {
      if (!url.pathname.includes('namespaces/one/mcpservers')) return false;
      response.writeHead(500).end();
      return true;
    });
    const before = [
      stored('dev.skep.k8s.one/kept', '"Service"', '"MCPServer"'),
      stored('dev.skep.k8s.two/gone', '"namespace":"one"', '"namespace":"two"'),
      stored('dev.skep.k8s.three/gone', '"namespace":"one"', '"namespace":"three"'),
    ];
    const next = await follow({ kinds: ['Service', 'MCPServer'], namespaces: ['one', 'two'] }, before);
    const { kept } = await next.until((state) => state.servers.length === 1 && state.faults.length === 1);
    expect(kept.map(({ name }) => name)).toEqual(['dev.skep.k8s.one/kept']);
  });

  test.each<[string, object]>([
    ['no list', { kind: 'Status' }],
    ['an answer that does not call itself a list', { metadata: { resourceVersion: '9' } }],
    ['a list without a version', { kind: 'List', metadata: {}, items: [] }],
    [
      'an object without a name',
      { kind: 'List', metadata: { resourceVersion: '9' }, items: [{ metadata: {} }] },
    ],
    ['a number in place of an object', { kind: 'List', metadata: { resourceVersion: '9' }, items: [7] }],
    [
      'an object whose name would be another entry',
      {
        kind: 'List',
        metadata: { resourceVersion: '9' },
        items: [{ metadata: { namespace: 'one', name: 'a/b' } }],
      },
    ],
  ])('%s changes nothing', async (_, answer) => {
    await cluster.put(exported('Service', 'one/a'));
    const services = await follow();
    await services.untilShown('one/a');
    answerAll((url, response) => {
      if (isWatch(url)) sendJson(response, 410, { message: 'gone' });
      else sendJson(response, 200, answer);
      return true;
    });
    await cluster.awayWhile(() => Promise.resolve());
    await services.until(({ faults }) => faults.length === 1);
    expect(services.shown).toEqual(['one/a']);
    cluster.intercept = () => false;
    await services.until(({ faults }) => faults.length === 0);
  });

  test('an object of another namespace than was asked for is refused', async () => {
    await cluster.put(exported('Service', 'two/a'));
    answerAll((url, response) => {
      if (isWatch(url)) return false;
      const { annotations } = exported('Service', 'two/a');
      const items = [{ metadata: { namespace: 'two', name: 'a', annotations } }];
      sendJson(response, 200, { kind: 'List', metadata: { resourceVersion: '1' }, items });
      return true;
    });
    const services = await follow({ ...SERVICES, namespaces: ['one'] });
    expect(services.state.faults[0]).toContain('an object of another namespace');
    expect(services.shown).toEqual([]);
  });

  test('404 for what it has is an outage, and takes nothing away', async () => {
    await cluster.put(exported('MCPServer', 'one/a'));
    const servers = await follow({ kinds: ['MCPServer'] });
    await servers.untilShown('one/a');
    answerAll((_, response) => {
      response.writeHead(404).end('<html>no such site</html>');
      return true;
    });
    await cluster.awayWhile(() => Promise.resolve());
    await servers.until(({ faults }) => faults.length === 1);
    expect(servers.shown).toEqual(['one/a']);
  });

  test.each([
    ['is no JSON', 'nonsense\n'],
    ['is of an unknown type', '{"type":"EXPLODED","object":{}}\n'],
    ['says 410 in the stream', '{"type":"ERROR","object":{"code":410,"message":"too old"}}\n'],
    ['has no object', '{"type":"ADDED"}\n'],
    ['ends in the middle', '{"type":"ADDED","obj'],
    ['is larger than any object', `{"type":"ADDED","object":"${'x'.repeat(9 * 1024 * 1024)}"}\n`],
  ])('an event that %s makes it read everything again', async (_, line) => {
    await cluster.put(exported('Service', 'one/a'));
    const services = await follow();
    await services.untilShown('one/a');
    let lied = 0;
    answerAll((url, response) => {
      if (!isWatch(url) || lied > 0) return false;
      lied += 1;
      response.writeHead(200).end(line);
      return true;
    });
    await cluster.awayWhile(() => cluster.put(exported('Service', 'one/b')));
    await services.untilShown('one/a', 'one/b');
    expect(lied).toBe(1);
  });

  test('pages that are too large are asked for in smaller ones', async () => {
    await cluster.put(exported('Service', 'one/a'));
    await cluster.put(exported('Service', 'one/b'));
    answerAll((url, response) => {
      if (isWatch(url) || url.searchParams.get('limit') === '1') return false;
      response.writeHead(200, { 'content-length': String(64 * 1024 * 1024) }).flushHeaders();
      return true;
    });
    const services = await follow();
    await services.untilShown('one/a', 'one/b');
  });

  test.each([
    ['at once', ''],
    ['after a word', '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n'],
    [
      'after a word, by 410',
      '{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"2"}}}\n{"type":"ERROR","object":{"code":410}}\n',
    ],
  ])('a watch that ends %s, again and again, is not asked for without a pause', async (_, said) => {
    answerAll((url, response) => {
      if (isWatch(url)) response.writeHead(200).end(said);
      return isWatch(url);
    });
    const begun = performance.now();
    const services = await follow();
    await services.until(() => cluster.asked.filter((asked) => asked.includes('watch=true')).length >= 5);
    expect(performance.now() - begun).toBeGreaterThan(1_000);
  });

  test('a part that never answers keeps nobody from the others', async () => {
    await cluster.put(exported('Deployment', 'one/b'));
    answerAll((url) => url.pathname.includes('services'));
    const parts = { kinds: ['Service', 'Deployment'] };
    followed = await Followed.start(watchedSource(cluster.kubeconfig, parts));
    await followed.untilShown('one/b');
  });

  test('an object that is nested as deeply as a cluster allows hides no other', async () => {
    const deep = JSON.parse('{"a":'.repeat(2_000) + '1' + '}'.repeat(2_000)) as object;
    await cluster.put({ ...exported('MCPServer', 'one/deep'), spec: deep });
    const servers = await follow({ kinds: ['MCPServer'] });
    await servers.untilShown('one/deep');
    await cluster.put({ ...exported('MCPServer', 'one/next'), spec: deep });
    await servers.untilShown('one/deep', 'one/next');
    expect(servers.state.faults).toEqual([]);
  });

  test('what has no room is left out and told, and comes when there is room', async () => {
    for (const name of ['one/a', 'one/b']) await cluster.put(exported('Service', name));
    const services = await follow(SERVICES, [], { limits: { ...DEFAULT_LIMITS, maxCatalogueSize: 700 } });
    const fault =
      'services of all namespaces: the source describes more than 700 bytes; some objects are left out';
    expect(services.shown).toEqual(['one/a']);
    expect(services.state.faults).toEqual([fault]);
    await cluster.awayWhile(() => cluster.remove({ kind: 'Service', namespace: 'one', name: 'a' }));
    await services.untilShown('one/b');
    await services.until(({ faults }) => faults.length === 0);
  });

  test('says nothing more while a kind is absent and nothing changes', async () => {
    await cluster.removeCustomKinds();
    let rings = 0;
    const source = watchedSource(cluster.kubeconfig, { kinds: ['MCPServer'] });
    const following = await source.follow({ before: [], changed: () => void (rings += 1) });
    const discovered = (times: number): Promise<unknown> =>
      vi.waitFor(
        () => expect(cluster.asked.filter((asked) => asked === '/apis').length).toBeGreaterThanOrEqual(times),
        30_000,
      );
    await discovered(2);
    const before = rings;
    await discovered(4);
    await following.close();
    expect(rings).toBe(before);
  });

  test('a kind is gone when the cluster goes on saying so, not when it says so before and after an outage', async () => {
    await cluster.put(exported('MCPServer', 'one/a'));
    let later = 0;
    const clock = { ...systemClock, elapsed: () => systemClock.elapsed() + later };
    const servers = await follow({ kinds: ['MCPServer'] }, [], { clock });
    await servers.untilShown('one/a');
    const knowsNoKinds = (url: URL, response: ServerResponse): boolean => {
      if (url.pathname === '/apis') sendJson(response, 200, { kind: 'APIGroupList', groups: [] });
      else response.writeHead(404).end();
      return true;
    };
    const askedOften = async (times: number): Promise<void> => {
      const before = cluster.asked.length;
      const since = (): number => cluster.asked.slice(before).filter((asked) => asked === '/apis').length;
      await servers.until(() => since() >= times);
    };
    answerAll(knowsNoKinds);
    await cluster.awayWhile(() => Promise.resolve());
    await askedOften(1);
    answerAll((_, response) => {
      response.writeHead(503).end();
      return true;
    });
    await servers.until(({ faults }) => faults.length === 1);
    later = 60_000;
    answerAll(knowsNoKinds);
    await askedOften(2);
    expect(servers.shown).toEqual(['one/a']);
    cluster.intercept = () => false;
    await servers.until(({ faults }) => faults.length === 0);
    expect(servers.shown).toEqual(['one/a']);
  });

  test('reads 5,000 objects with ten requests, and one change of them with none', async () => {
    for (let index = 0; index < 5_000; index += 1) await cluster.put(exported('Service', `one/s${index}`));
    const services = await follow();
    expect(services.state.servers).toHaveLength(5_000);
    await services.until(() => cluster.asked.some((asked) => asked.includes('watch=true')));
    expect(cluster.asked).toHaveLength(11);
    const annotations = { 'skep.dev/registry-description': 'changed' };
    await cluster.put(exported('Service', 'one/s1', annotations));
    await services.until(({ servers }) => servers.some(({ json }) => json.includes('"changed"')));
    expect(cluster.asked).toHaveLength(11);
  });
});

describe('namespaces that a variable names', () => {
  const within = (env: Readonly<Record<string, string>>, settings: object = SERVICES) =>
    Followed.start(watchedSource(cluster.kubeconfig, settings, { env }));

  test.each([
    ['SKEP_REGISTRY_WATCH_NAMESPACE', 'one, three', {}, ['one/a', 'three/a']],
    ['THV_REGISTRY_WATCH_NAMESPACE', 'two', {}, ['two/a']],
    ['SKEP_REGISTRY_WATCH_NAMESPACE', '', {}, ['one/a', 'three/a', 'two/a']],
    ['SKEP_REGISTRY_WATCH_NAMESPACE', 'one', { namespaces: ['two'] }, ['two/a']],
    ['SKEP_REGISTRY_WATCH_NAMESPACE', 'one', { namespaces: [] }, ['one/a']],
  ])('%s=%s with %j', async (name, value, settings, expected) => {
    for (const at of ['one/a', 'two/a', 'three/a']) await cluster.put(exported('Service', at));
    followed = await within({ [name]: value }, { ...SERVICES, ...settings });
    await followed.until(({ isWhole }) => isWhole);
    expect(followed.shown).toEqual(expected);
  });

  test('are refused where they are none, and do not become all', () => {
    const env = { SKEP_REGISTRY_WATCH_NAMESPACE: 'one two' };
    const message = 'SKEP_REGISTRY_WATCH_NAMESPACE names "one two", which is no namespace';
    expect(() => watchedSource(cluster.kubeconfig, SERVICES, { env })).toThrow(message);
  });
});

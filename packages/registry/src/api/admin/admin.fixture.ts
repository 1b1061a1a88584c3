import { signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { RULES } from '../../access/callers.fixture.ts';
import { resolveSwitches, type SwitchSettings } from '../../access/authority.ts';
import type { AuthConfig } from '../../config/auth.ts';
import { StoreFollower } from '../../engine/follow-store.ts';
import { ReadEngine } from '../../engine/read-engine.ts';
import type { Limits } from '../../shape/limits.ts';
import type { NamedRegistry, NamedSource } from '../../store/rows.ts';
import type { Store } from '../../store/store.ts';
import { ingest } from '../../sync/ingest.ts';
import {
  ANONYMOUS_AUTH,
  apiUnderTest,
  oauthWith,
  type ApiUnderTest,
  type TestRequest,
  type TestResponse,
} from '../api.fixture.ts';
import type { ListenerOptions } from '../http/listener.ts';
import type { Method } from '../route/route.ts';
import { storeUnderTest } from './store.fixture.ts';

// The HTTP interface over a store, for the tests of this folder. Callers are named by what they hold.

/** What the token of each caller carries. */
export const CALLERS = {
  root: { role: 'super-admin' },
  writer: { role: 'writer', org: 'acme', team: 'platform' },
  admin: { role: 'admin', org: 'acme', team: 'platform' },
  both: { role: ['admin', 'writer'], org: 'acme', team: 'platform' },
  reader: { org: 'acme', team: 'platform' },
  outsider: { role: ['admin', 'writer'], org: 'other' },
} as const;

export type CallerName = keyof typeof CALLERS | 'nobody';

export interface Request {
  readonly as?: CallerName;
  /** An object is sent as JSON, a text as it is. */
  readonly body?: unknown;
  readonly type?: string;
}

export interface AdminUnderTest {
  readonly store: Store;
  readonly api: ApiUnderTest;
  /** What the synchronisation was asked to do. */
  readonly asked: string[];
  send(method: Method, url: string, request?: Request): Promise<TestResponse>;
  /** Everything the store holds, as text. */
  state(): Promise<string>;
  close(): Promise<void>;
}

export type ModeName = 'anonymous' | 'auth-only' | 'full';

export interface AdminOptions {
  readonly mode?: ModeName;
  readonly switches?: SwitchSettings;
  readonly publicPaths?: readonly string[];
  readonly sources?: readonly NamedSource[];
  readonly registries?: readonly NamedRegistry[];
  readonly limits?: Partial<Limits>;
  readonly listener?: Partial<ListenerOptions>;
}

const ACME = '{"org":["acme"]}';
const OTHER = '{"org":["other"]}';

export function source(name: string, changes: Partial<NamedSource> = {}): NamedSource {
  const config = '{"path":"/data/x.json"}';
  return { name, kind: 'file', config, format: null, filter: null, interval: 60_000, claims: '', ...changes };
}

/** What the configuration file holds unless a test says otherwise. */
export const CONFIG_SOURCES: readonly NamedSource[] = [
  source('catalog', { claims: ACME }),
  source('foreign', { claims: OTHER }),
  source('internal', { kind: 'managed', config: '{}', interval: null }),
];

export const CONFIG_REGISTRIES: readonly NamedRegistry[] = [
  { name: 'acme-all', sources: ['catalog', 'internal'], claims: ACME },
  { name: 'foreign-all', sources: ['foreign', 'internal'], claims: OTHER },
  { name: 'open', sources: ['internal'], claims: '' },
  { name: 'synced', sources: ['catalog'], claims: '' },
];

export async function adminUnderTest(options: AdminOptions = {}): Promise<AdminUnderTest> {
  const { sources = CONFIG_SOURCES, registries = CONFIG_REGISTRIES } = options;
  const store = await storeUnderTest.open();
  await store.reconcile({ sources, registries });
  const engine = new ReadEngine([]);
  const follower = new StoreFollower({ store, engine, log: silentLog, onSources: () => undefined });
  await follower.start();
  const key = await signingKey('k1');
  const asked: string[] = [];
  const api = await apiUnderTest({
    snapshot: engine.current(),
    auth: authOf(options),
    keys: [key],
    listener: options.listener ?? {},
    limits: {
      maxMetaSize: 1000,
      maxCatalogueSize: 9_000_000,
      allowedPaths: ['/data'],
      ...options.limits,
    },
    admin: {
      store,
      applied: async (revision) => {
        await follower.reach(revision);
        api.serve(engine.current());
      },
      serves: (identity) => engine.serves(identity),
      sync: {
        sourceChanged: async (name) => void asked.push(`changed ${name}`),
        syncNow: async (name) => void asked.push(`sync ${name}`),
      },
      ingest: async (input) => Promise.resolve(ingest(input)),
      log: silentLog,
    },
  });
  const tokens = new Map<string, string>();
  for (const [name, claims] of Object.entries(CALLERS)) tokens.set(name, await signed(key, claims));
  return {
    store,
    api,
    asked,
    send: (method, url, request = {}) => api.ask(injection({ method, url }, request, tokens)),
    state: () => stateOf(store),
    close: async () => {
      await api.close();
      await follower.close();
      await store.close();
    },
  };
}

function authOf({ mode = 'full', switches = {}, publicPaths = [] }: AdminOptions): AuthConfig {
  if (mode === 'anonymous') return ANONYMOUS_AUTH;
  if (mode === 'auth-only') return oauthWith({ kind: 'auth-only' }, { publicPaths });
  return oauthWith({ kind: 'full', rules: RULES, switches: resolveSwitches(switches) }, { publicPaths });
}

function injection(
  target: Pick<TestRequest, 'method' | 'url'>,
  { as = 'root', body, type = 'application/json' }: Request,
  tokens: ReadonlyMap<string, string>,
): TestRequest {
  const token = tokens.get(as);
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  if (body === undefined) return { ...target, headers: authorization };
  const payload = typeof body === 'string' || Buffer.isBuffer(body) ? body : JSON.stringify(body);
  return { ...target, payload, headers: { ...authorization, 'content-type': type } };
}

async function stateOf(store: Store): Promise<string> {
  const sources = await store.listSources();
  const entries = await Promise.all(sources.map(({ name }) => store.readEntries(name)));
  return JSON.stringify([sources, await store.listRegistries(), entries]);
}

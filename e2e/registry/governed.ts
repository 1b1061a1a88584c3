import { AUDIENCE, type IdentityProvider, startIdentityProvider } from '../fixtures/identity-provider.ts';
import { freePort } from '../fixtures/free-port.ts';
import { RegistryFolder, type Running } from './process.ts';

// The running program in full authorization: what it serves, what it hides, and who asks.

/** What the token of each caller carries. */
export const CALLERS = {
  root: { sub: 'root', role: 'super-admin' },
  both: { sub: 'both', role: ['admin', 'writer'], org: 'acme', team: 'platform' },
  writer: { sub: 'writer', role: 'writer', org: 'acme', team: 'platform' },
  reader: { sub: 'reader', org: 'acme', team: 'platform' },
  outsider: { sub: 'outsider', role: ['admin', 'writer'], org: 'contoso' },
} as const;

export type CallerName = keyof typeof CALLERS | 'nobody';

const bundle = (name: string) => ({ namespace: 'io.acme', name, version: '1.0.0', description: 'Helps' });
const catalogue = (content: object): string =>
  JSON.stringify({ version: '1.0.0', meta: { last_updated: '2026-01-01T00:00:00Z' }, data: content });
const server = (name: string) => ({ name, version: '1.0.0', description: 'Serves' });

/** Visible to whoever has `org: acme`. */
export const CATALOGUE = catalogue({
  servers: [server('io.acme/news'), server('io.acme/weather')],
  skills: [bundle('triage')],
  plugins: [bundle('linter')],
});
/** A word that stands in every name that only `org: other` may see. */
export const HIDDEN = 'zanzibar';
const HIDDEN_CATALOGUE = catalogue({
  servers: [server(`io.${HIDDEN}/tool`), server(`io.acme/${HIDDEN}`)],
  skills: [bundle(HIDDEN)],
  plugins: [bundle(HIDDEN)],
});

const ROLES = {
  superAdmin: [{ role: 'super-admin' }],
  manageSources: [{ role: 'admin' }],
  manageRegistries: [{ role: 'admin' }],
  manageEntries: [{ role: 'writer' }],
};

const every = { syncPolicy: { interval: '1h' } };

export interface GovernedOptions {
  /** `auth` of the configuration instead of full authorization by the identity provider. */
  readonly auth?: object;
  readonly limits?: object;
  /** False where nothing can be published. */
  readonly managed?: boolean;
}

/** An identity provider, a folder, and programs that are configured alike but for what each test asks for. */
export class Governed {
  readonly idp: IdentityProvider;
  readonly folder: RegistryFolder;
  readonly #tokens = new Map<string, string>();
  #started = 0;

  private constructor(idp: IdentityProvider, folder: RegistryFolder) {
    this.idp = idp;
    this.folder = folder;
  }

  static async create(): Promise<Governed> {
    const governed = new Governed(await startIdentityProvider(), await RegistryFolder.create());
    await governed.folder.write('catalogue.json', CATALOGUE);
    await governed.folder.write('hidden.json', HIDDEN_CATALOGUE);
    for (const [name, claims] of Object.entries(CALLERS)) {
      governed.#tokens.set(name, await governed.idp.token(claims));
    }
    return governed;
  }

  /** `Authorization` of a caller. */
  as(caller: CallerName): Record<string, string> {
    const token = this.#tokens.get(caller);
    return token === undefined ? {} : { authorization: `Bearer ${token}` };
  }

  async serve({ auth = this.auth(), limits = {}, managed = true }: GovernedOptions = {}): Promise<Running> {
    this.#started += 1;
    const name = `registry-${this.#started}`;
    const internal = managed ? ['internal'] : [];
    const config = {
      sources: [
        { name: 'catalog', file: { path: 'catalogue.json' }, ...every, claims: { org: 'acme' } },
        { name: `${HIDDEN}-src`, file: { path: 'hidden.json' }, ...every, claims: { org: 'other' } },
        ...internal.map((one) => ({ name: one, managed: {} })),
      ],
      registries: [
        { name: 'all', sources: ['catalog', `${HIDDEN}-src`, ...internal], claims: { org: 'acme' } },
        { name: 'gated', sources: ['catalog', ...internal], claims: { org: 'other' } },
      ],
      // Tests of hostile tokens are as many refusals as no caller may cause.
      limits: {
        allowedPaths: [this.folder.path],
        refusalRate: { perSecond: 100_000, burst: 100_000 },
        ...limits,
      },
      auth,
      storage: { path: `${name}.db` },
    };
    return this.folder.serve(await this.folder.write(`${name}.yaml`, JSON.stringify(config)));
  }

  /** Full authorization by the identity provider, whose keys are asked for where it says unless `jwksUrl` is given. */
  auth(keys: { readonly jwksUrl?: string } = {}): object {
    const provider = { name: 'test', issuerUrl: this.idp.issuer, audience: AUDIENCE, allowPrivateIP: true };
    return {
      mode: 'oauth',
      oauth: { resourceUrl: 'http://127.0.0.1:8080', providers: [{ ...provider, ...keys }] },
      authz: { roles: ROLES },
    };
  }

  /** The same while nothing answers where the keys are. */
  async authWithoutKeys(): Promise<object> {
    return this.auth({ jwksUrl: `http://127.0.0.1:${await freePort()}/jwks` });
  }

  async end(): Promise<void> {
    await this.folder.remove();
    await this.idp.stop();
  }
}

import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { statusOf, type Client } from '@skep/core/fetch/client.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isAt, shownServer } from './registry-address.ts';

/** How people sign in at one of the identity providers of a server. */
export interface OfferedLogin {
  readonly issuer: string;
  readonly clientId?: string;
  readonly scopes?: readonly string[];
  readonly audience?: string;
}

/** What a server of registries says to those who want to sign in (decision 0357). */
export interface LoginDocument {
  /** Without a slash at its end. */
  readonly server: string;
  readonly logins: readonly OfferedLogin[];
}

const WELL_KNOWN = '/.well-known/skep-registry';

/**
 * The document of whatever server an address belongs to; undefined where there is none. Fails with `auth/bad-metadata` for one
 * that speaks of another server, and as `client` does.
 */
export async function readLoginDocument(
  address: URL,
  client: Pick<Client, 'getJson'>,
  signal: AbortSignal,
): Promise<LoginDocument | undefined> {
  const path = address.pathname.replace(/\/+$/u, '');
  const places = path === '' ? [WELL_KNOWN] : [WELL_KNOWN + path, WELL_KNOWN];
  for (const place of places) {
    const value = await client
      .getJson(address.origin + place, { signal, redirects: 'refuse' })
      .catch((error: unknown) => {
        const status = statusOf(error) ?? 500;
        if (status < 500 || hasCode(error, 'fetch/not-json')) return undefined;
        throw error;
      });
    if (value !== undefined) return documentIn(value, address);
  }
  return undefined;
}

function documentIn(value: unknown, address: URL): LoginDocument {
  const { resource, sign_in: offered } = isRecord(value) ? value : {};
  const logins = Array.isArray(offered) ? offered.map(loginIn) : [];
  if (typeof resource !== 'string' || logins.length === 0 || logins.includes(undefined)) {
    throw new SkepError('auth/bad-metadata', {
      message: `what ${address.host} says about signing in cannot be read`,
    });
  }
  // A token for what another address says would be shown to this one, or the other way round (RFC 9728 §3.3).
  if (!isAt(address.href, resource)) {
    const other = pasteable(resource, address);
    throw new SkepError('auth/bad-metadata', {
      message: `${shownServer(address.href)} says that its address is "${printable(resource.slice(0, 200))}"`,
      hint:
        other === undefined
          ? 'whoever runs it has to set its resourceUrl to the address that people use'
          : `use that: skep login ${other}`,
    });
  }
  const known = logins.filter((login) => login !== undefined);
  const { origin, pathname } = new URL(resource);
  return { server: origin + pathname.replace(/\/+$/u, ''), logins: known };
}

/** An address of the same host that is a plain word of a command line; words of others become no command. */
function pasteable(text: string, { hostname, protocol }: URL): string | undefined {
  const url = URL.parse(text);
  const isSame = url?.hostname === hostname && (url.protocol === 'https:' || url.protocol === protocol);
  return isSame && /^https?:\/\/[\w.:/-]+$/u.test(url.href) ? url.href : undefined;
}

/** Letters of all that is said of one login: it is shown to a person, who is to read it. */
const MAX_LOGIN = 8_192;

function loginIn(value: unknown): OfferedLogin | undefined {
  const { issuer, client_id: clientId, scopes, audience } = isRecord(value) ? value : {};
  if (typeof issuer !== 'string' || !URL.canParse(issuer)) return undefined;
  if (JSON.stringify([issuer, clientId, scopes, audience]).length > MAX_LOGIN) return undefined;
  return {
    issuer,
    ...(typeof clientId === 'string' && { clientId }),
    ...(Array.isArray(scopes) && { scopes: scopes.filter((scope) => typeof scope === 'string') }),
    ...(typeof audience === 'string' && { audience }),
  };
}

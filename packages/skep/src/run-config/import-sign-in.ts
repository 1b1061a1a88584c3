import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';
import { formatDuration } from '@skep/core/time/duration.ts';
import {
  EXCHANGE_CLIENT_SECRET,
  formatReference,
  isReference,
  OIDC_CLIENT_SECRET,
  OTEL_HEADERS,
  parseReference,
  REMOTE_BEARER_TOKEN,
  REMOTE_CLIENT_SECRET,
} from '../secrets/reference.ts';

type Document = Readonly<Record<string, unknown>>;

/** Where Skep has what another tool writes as a member of `oidc_config`. */
const MOVED: Readonly<Record<string, string>> = {
  auth_token_file: 'jwks_auth_token_file',
  ca_bundle: 'skep_ca_bundle',
};

/**
 * A document with all that it says of signing in where Skep looks for it: the steps `auth` and `strip-auth`, which follow
 * from `oidc_config`, are taken out of its list, and a client secret goes where secrets are. What says two things stays as
 * it is, so that it is refused.
 */
export function withSignIn(document: Document): Document {
  const { oidc_config: said, ...others } = withoutSteps(document);
  if (said === undefined || said === null) return others;
  if (!isRecord(said)) return { ...others, oidc_config: said };
  const { client_secret: secret, ...oidc } = said;
  const moved = Object.entries(oidc).filter(([key, value]) => {
    const to = MOVED[key];
    return to !== undefined && (isNone(others[to]) || others[to] === value);
  });
  const kept = Object.entries(oidc).filter((entry) => !moved.some(([key]) => key === entry[0]));
  const elsewhere = moved.filter(([, value]) => !isNone(value)).map(([key, value]) => [MOVED[key], value]);
  return {
    ...others,
    ...Object.fromEntries(elsewhere),
    ...secretMembers(others, OIDC_CLIENT_SECRET, secret),
    oidc_config: Object.fromEntries([...kept, ...(isText(secret) ? [] : [['client_secret', secret]])]),
  };
}

/** As `withSignIn`, for the exchange of tokens: its client secret goes where secrets are. */
export function withExchange(document: Document): Document {
  const { token_exchange_config: said, ...others } = document;
  if (said === undefined || said === null) return others;
  if (!isRecord(said) || !isText(said['client_secret'])) return document;
  const { client_secret: secret, ...exchange } = said;
  return {
    ...others,
    ...secretMembers(others, EXCHANGE_CLIENT_SECRET, secret),
    token_exchange_config: exchange,
  };
}

/** As `withSignIn`, for what is measured: the headers of the collector go where secrets are. */
export function withCollector(document: Document): Document {
  const { telemetry_config: said } = document;
  const headers = isRecord(said) ? said['headers'] : undefined;
  if (!isRecord(said) || !isRecord(headers)) return document;
  const values = Object.values(headers);
  if (values.length === 0 || !values.every((value) => typeof value === 'string')) return document;
  const { headers: _moved, ...telemetry } = said;
  const secret = secretMembers(document, OTEL_HEADERS, JSON.stringify(headers));
  return { ...document, ...secret, telemetry_config: telemetry };
}

/** Of another tool's sign-ins, which are no use here. */
const OF_OTHERS = /^(?:cached_|use_pkce$)/u;
/** Nanoseconds, as Go writes durations. */
const PER_MILLISECOND = 1_000_000;

/**
 * As `withSignIn`, for signing in to a server elsewhere: secrets go where secrets are, and what another tool remembers of its own
 * sign-in is left out. Where the issuer is named, the endpoints that were once found there are as well.
 */
export function withRemoteAuth(document: Document): Document {
  const { remote_auth_config: said, ...others } = document;
  if (said === undefined || said === null) return others;
  if (!isRecord(said) || !isText(said['client_secret']) || !isText(said['bearer_token'])) return document;
  const { client_secret: secret, bearer_token: token, timeout, ...auth } = said;
  const hasIssuer = !isNone(auth['issuer']);
  const kept = Object.entries(auth).filter(
    ([key, value]) =>
      !OF_OTHERS.test(key) &&
      !isNone(value) &&
      value !== 0 &&
      !(hasIssuer && (key === 'authorize_url' || key === 'token_url')),
  );
  const lasts = typeof timeout === 'number' ? formatDuration(timeout / PER_MILLISECOND) : timeout;
  const withSecret = { ...others, ...secretMembers(others, REMOTE_CLIENT_SECRET, secret) };
  return {
    ...withSecret,
    ...secretMembers(withSecret, REMOTE_BEARER_TOKEN, token),
    remote_auth_config: {
      ...Object.fromEntries(kept),
      ...(isNone(lasts) || timeout === 0 ? {} : { timeout: lasts }),
    },
  };
}

function isNone(value: unknown): boolean {
  return value === undefined || value === null || value === '';
}

function isText(value: unknown): boolean {
  return isNone(value) || typeof value === 'string';
}

/** A reference is one of the workload's secrets; a value is one of its secret variables. */
function secretMembers(document: Document, target: string, secret: unknown): Document {
  if (typeof secret !== 'string' || secret === '') return {};
  if (isReference(secret)) {
    const reference = formatReference({ name: parseReference(secret).name, target });
    return { secrets: [...listOf(document['secrets']), reference] };
  }
  const { env_vars: variables } = document;
  return {
    env_vars: { ...(isRecord(variables) ? variables : {}), [target]: secret },
    secret_env: [...listOf(document['secret_env']), target],
  };
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}

function withoutSteps(document: Document): Document {
  const { middleware_configs: steps } = document;
  if (!Array.isArray(steps)) return document;
  const configs = steps.map(oidcOf).filter((one) => one !== undefined);
  const oidc = document['oidc_config'] ?? configs[0];
  if (oidc === undefined) return document;
  const isMet = (step: unknown): boolean => {
    const config = oidcOf(step);
    return config === undefined ? isStripAuth(step) : isDeepStrictEqual(config, oidc);
  };
  return { ...document, oidc_config: oidc, middleware_configs: steps.filter((step) => !isMet(step)) };
}

/** The configuration of a step `auth` that says nothing else. */
function oidcOf(step: unknown): Document | undefined {
  if (!isRecord(step) || step['type'] !== 'auth' || !hasOnly(step, ['type', 'parameters'])) return undefined;
  const { parameters } = step;
  if (!isRecord(parameters) || !hasOnly(parameters, ['oidc_config'])) return undefined;
  const { oidc_config: oidc } = parameters;
  return isRecord(oidc) ? oidc : undefined;
}

function isStripAuth(step: unknown): boolean {
  if (!isRecord(step) || step['type'] !== 'strip-auth' || !hasOnly(step, ['type', 'parameters']))
    return false;
  return isNone(step['parameters']) || isDeepStrictEqual(step['parameters'], {});
}

function hasOnly(value: Document, keys: readonly string[]): boolean {
  return Object.keys(value).every((key) => keys.includes(key));
}

import { isUnlabeled, type RawClaims } from '@skep/auth/claims/claims.ts';
import { ROLES, type RoleRules } from '@skep/auth/claims/roles.ts';
import { decodeClaimSet } from '../access/claim-set.ts';
import type { AuthConfig, OauthAuth } from '../config/auth.ts';
import type { PostgresSettings } from '../store/postgres/settings.ts';
import { isSynced, type NamedRegistry, type NamedSource } from '../store/rows.ts';

/** The parts of a configuration that may deserve a warning. */
export interface WarnedConfig {
  readonly auth: AuthConfig;
  readonly database?: PostgresSettings;
  readonly sources: readonly NamedSource[];
  readonly registries: readonly NamedRegistry[];
}

export interface StartWarning {
  readonly fields: Readonly<Record<string, unknown>>;
  readonly message: string;
}

/**
 * What an operator has to know before the first request (docs/behaviour/registry.md#logs-and-warnings): everything that
 * makes the server more open or more closed than its file looks. Said at every start, and again after a reload.
 */
export function startWarnings(config: WarnedConfig): StartWarning[] {
  const messages = [...authWarnings(config.auth), ...databaseWarnings(config.database)];
  return [...messages.map((message) => ({ fields: {}, message })), ...authzWarnings(config)];
}

/** A token travels as it is, and who gets it may use it for its 15 minutes. */
function* databaseWarnings(database: PostgresSettings | undefined): Generator<string> {
  if (database?.awsRdsIam === undefined || database.sslMode !== 'require') return;
  yield 'database.sslMode "require" does not prove who the server is: whoever answers in its place gets a token for the database; use verify-full';
}

/** About the mode the registry runs in. */
function* authWarnings(auth: AuthConfig): Generator<string> {
  if (auth.mode === 'anonymous') {
    yield 'Anonymous mode: authentication and authorization are disabled; development only';
    if (ROLES.some((role) => (auth.unusedRoles[role] ?? []).length > 0)) {
      yield 'Authorization roles configured but auth is disabled (anonymous mode); role checks are skipped';
    }
    return;
  }
  const { access, providers } = auth;
  if (access.kind === 'full') yield* roleWarnings(access.rules, providers);
  else yield 'Authorization not configured, per-entry claims filtering disabled (auth-only mode)';
  if (providers.some(({ plainHttp }) => plainHttp === 'any')) {
    yield 'SKEP_REGISTRY_INSECURE_URL is set: identity providers may be reached over plain http';
  }
}

function* roleWarnings(rules: RoleRules, providers: OauthAuth['providers']): Generator<string> {
  if (ROLES.every((role) => (rules[role] ?? []).length === 0)) {
    yield 'Authorization is on and no role is granted to anybody: nothing can be administered';
  }
  for (const role of ROLES) {
    if (!(rules[role] ?? []).some(isUnlabeled)) continue;
    yield `auth.authz.roles.${role} holds an empty rule, which matches nobody`;
  }
  // A rule looks at claims, and claims count whoever has signed them.
  for (const role of ROLES) {
    const granting = providers.filter(({ grants }) => grants?.roles?.includes(role) ?? true);
    const isOpen = (rules[role] ?? []).some((rule) => !isUnlabeled(rule) && !Object.hasOwn(rule, 'iss'));
    const names = granting.map(({ name }) => `"${name}"`).join(', ');
    if (!isOpen || granting.length < 2) continue;
    yield `auth.authz.roles.${role} holds a rule without "iss": each of the identity providers ${names} can grant it; name the issuer in the rule, or say in grants of each provider what it may`;
  }
}

function* authzWarnings({ auth, sources, registries }: WarnedConfig): Generator<StartWarning> {
  if (auth.mode !== 'oauth' || auth.access.kind !== 'full') return;
  for (const { name } of sources.filter(isInvisible)) {
    const message = 'a source without claims: its entries are invisible to everyone except super-admins';
    yield { fields: { source: name }, message };
  }
  const isManaged = sources.some(({ kind }) => kind === 'managed');
  if (!isManaged && (auth.access.rules.manageEntries ?? []).length > 0) {
    const message = 'the role manageEntries is configured and no managed source: publishing will fail';
    yield { fields: {}, message };
  }
  for (const registry of registries) yield* gateWarnings(registry, sources);
}

/** Entries of synchronised sources have no claims but those of their source. */
function isInvisible({ kind, claims }: NamedSource): boolean {
  return isSynced(kind) && isUnlabeled(claimsOf(claims));
}

/** A gate value that no source carries is often a typing error: those who pass would be expected to see something. */
function* gateWarnings(
  { name, sources: linked, claims }: NamedRegistry,
  sources: readonly NamedSource[],
): Generator<StartWarning> {
  const feeding = sources.filter((source) => linked.includes(source.name));
  // Entries of other kinds bring claims of their own, which no configuration shows.
  if (!feeding.every(({ kind }) => isSynced(kind))) return;
  for (const [claim, value] of Object.entries(claimsOf(claims))) {
    const carried = feeding.flatMap((source) => valuesOf(claimsOf(source.claims)[claim]));
    if (valuesOf(value).every((each) => carried.includes(each))) continue;
    const message = 'no source of the registry carries this claim of its gate';
    yield { fields: { registry: name, claim }, message };
  }
}

function claimsOf(text: string): RawClaims {
  return decodeClaimSet(text) ?? {};
}

function valuesOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

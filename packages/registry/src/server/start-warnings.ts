import { isUnlabeled, type RawClaims } from '@skep/auth/claims/claims.ts';
import { ROLES, type RoleRules } from '@skep/auth/claims/roles.ts';
import { decodeClaimSet } from '../access/claim-set.ts';
import type { AuthConfig, OauthAuth } from '../config/auth.ts';
import type { PostgresSettings } from '../store/postgres/settings.ts';
import { isSynced, type NamedRegistry, type NamedSource } from '../store/rows.ts';

/** What of a configuration may deserve a warning. */
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
  return [...messages.map((message) => warning(message)), ...authzWarnings(config)];
}

/** A token travels as it is, and who gets it may use it for its 15 minutes. */
function databaseWarnings(database: PostgresSettings | undefined): string[] {
  const { awsRdsIam, sslMode } = database ?? {};
  if (awsRdsIam === undefined || sslMode !== 'require') return [];
  return [
    'database.sslMode "require" does not prove who the server is: whoever answers in its place gets a token for the database; use verify-full',
  ];
}

/** About the mode the registry runs in. */
function authWarnings(auth: AuthConfig): string[] {
  if (auth.mode === 'anonymous') {
    const hasRoles = ROLES.some((role) => (auth.unusedRoles[role] ?? []).length > 0);
    return [
      'Anonymous mode: authentication and authorization are disabled; development only',
      ...(hasRoles
        ? ['Authorization roles configured but auth is disabled (anonymous mode); role checks are skipped']
        : []),
    ];
  }
  const insecure = auth.providers.some(({ plainHttp }) => plainHttp === 'any')
    ? ['SKEP_REGISTRY_INSECURE_URL is set: identity providers may be reached over plain http']
    : [];
  const mode =
    auth.access.kind === 'full'
      ? [...roleWarnings(auth.access.rules), ...issuerWarnings(auth.access.rules, auth.providers)]
      : ['Authorization not configured, per-entry claims filtering disabled (auth-only mode)'];
  return [...mode, ...insecure];
}

function roleWarnings(rules: RoleRules): string[] {
  if (ROLES.every((role) => (rules[role] ?? []).length === 0)) {
    return ['Authorization is on and no role is granted to anybody: nothing can be administered'];
  }
  return ROLES.filter((role) => (rules[role] ?? []).some(isUnlabeled)).map(
    (role) => `auth.authz.roles.${role} holds an empty rule, which matches nobody`,
  );
}

/** A rule looks at claims, and claims count whoever has signed them. */
function issuerWarnings(rules: RoleRules, providers: OauthAuth['providers']): string[] {
  return ROLES.flatMap((role) => {
    const granting = providers.filter(({ grants }) => grants?.roles?.includes(role) ?? true);
    const isOpen = (rules[role] ?? []).some((rule) => !isUnlabeled(rule) && !Object.hasOwn(rule, 'iss'));
    const names = granting.map(({ name }) => `"${name}"`).join(', ');
    return isOpen && granting.length > 1
      ? [
          `auth.authz.roles.${role} holds a rule without "iss": each of the identity providers ${names} can grant it; name the issuer in the rule, or say in grants of each provider what it may`,
        ]
      : [];
  });
}

function authzWarnings({ auth, sources, registries }: WarnedConfig): StartWarning[] {
  if (auth.mode !== 'oauth' || auth.access.kind !== 'full') return [];
  const { rules } = auth.access;
  return [
    ...sources.filter(isInvisible).map(({ name }) =>
      warning('a source without claims: its entries are invisible to everyone except super-admins', {
        source: name,
      }),
    ),
    ...publishWarnings(rules, sources),
    ...registries.flatMap((registry) => gateWarnings(registry, sources)),
  ];
}

/** Entries of synchronised sources have no claims but those of their source. */
function isInvisible({ kind, claims }: NamedSource): boolean {
  return isSynced(kind) && isUnlabeled(claimsOf(claims));
}

function publishWarnings(rules: RoleRules, sources: readonly NamedSource[]): StartWarning[] {
  const isManaged = sources.some(({ kind }) => kind === 'managed');
  if (isManaged || (rules.manageEntries ?? []).length === 0) return [];
  return [warning('the role manageEntries is configured and no managed source: publishing will fail')];
}

/** A gate value that no source carries is often a typing error: those who pass would be expected to see something. */
function gateWarnings(
  { name, sources: linked, claims }: NamedRegistry,
  sources: readonly NamedSource[],
): StartWarning[] {
  const feeding = sources.filter((source) => linked.includes(source.name));
  // Entries of other kinds bring claims of their own, which no configuration shows.
  if (!feeding.every(({ kind }) => isSynced(kind))) return [];
  return Object.entries(claimsOf(claims)).flatMap(([key, value]) => {
    const wanted = valuesOf(value);
    const carried = feeding.flatMap((source) => valuesOf(claimsOf(source.claims)[key]));
    const missing = wanted.filter((each) => !carried.includes(each));
    return missing.length === 0
      ? []
      : [warning('no source of the registry carries this claim of its gate', { registry: name, claim: key })];
  });
}

function claimsOf(text: string): RawClaims {
  return decodeClaimSet(text) ?? {};
}

function valuesOf(value: unknown): unknown[] {
  return Array.isArray(value) ? value : value === undefined ? [] : [value];
}

function warning(message: string, fields: StartWarning['fields'] = {}): StartWarning {
  return { fields, message };
}

import { isSecretName, redactUrl } from '@skep/core/log/redact.ts';
import { isOfProxy, parseReference } from '../secrets/reference.ts';
import { isReadOnly, type Hardening } from './hardening.ts';
import { parseConfinedUser } from './confined-user-name.ts';
import { limitsOf, limitTexts, type GivenLimits } from './limits.ts';
import { isNeverReached } from './host-rule.ts';
import { notEnforced } from './not-enforced.ts';
import { profileMounts, profileVolumes, type PermissionProfile } from './profile.ts';
import { allowedHosts, allowedTexts } from './allowed-hosts.ts';

/** What of a run configuration says what its server may do. */
export interface Permitted extends GivenLimits {
  /** A container's own files, as a person said and as they are; see hardening.ts. */
  readonly read_only?: boolean | undefined;
  readonly hardening?: Hardening | undefined;
  readonly permission_profile: PermissionProfile;
  readonly env_vars: Readonly<Record<string, string>>;
  readonly secret_env: readonly string[];
  /** Where what it writes stays; see data-paths.ts. */
  readonly data_paths?: readonly string[] | undefined;
  /** References into the secrets store. */
  readonly secrets?: readonly string[] | undefined;
  /** Whom the person named for the sandbox; see `parseConfinedUser`. */
  readonly sandbox_user?: string | undefined;
  readonly isolate_network?: boolean | undefined;
  readonly allow_runtime_gateway?: boolean | undefined;
  /** Where a server elsewhere is, and what it is sent beside what its clients say. */
  readonly remote_url?: string | undefined;
  readonly header_forward?:
    | {
        readonly add_plaintext_headers?: Readonly<Record<string, string>> | undefined;
        readonly add_headers_from_secret?: Readonly<Record<string, string>> | undefined;
      }
    | undefined;
  readonly runtime?: { readonly kind: string; readonly narrow_network?: string | undefined } | undefined;
}

/** One line of the permission card: what a server may do, of one kind. */
export interface CardRow {
  /** Its member where the card is data. */
  readonly key: string;
  readonly label: string;
  /** As many as there are; a person is shown `text`. */
  readonly values: readonly string[];
  /** For people, in one line; may hold anything that a catalogue wrote, so whoever prints it makes it printable. */
  readonly text: string;
  readonly tone: 'plain' | 'caution';
}

/** So much of a row stands in one line for people. */
const MAX_SHOWN = 20;
const MAX_SHOWN_CHARS = 200;

/** What a workload may do on this machine: a row for each kind of right; rows of rare rights only where they are given. */
export function permissionCard(permitted: Permitted): readonly CardRow[] {
  const { permission_profile: profile, env_vars, secret_env, data_paths, runtime, remote_url } = permitted;
  if (remote_url !== undefined) return elsewhereRows(permitted, remote_url);
  const stored = (permitted.secrets ?? []).map((text) => parseReference(text).target);
  const mounts = profileMounts(profile, '/');
  const sources = (readOnly: boolean): string[] =>
    mounts
      .filter((mount) => mount.readOnly === readOnly)
      .map(({ source, target }) => (source === target ? source : `${source} as ${target}`));
  const clear = Object.keys(env_vars).filter((name) => secret_env.includes(name) || isSecretName(name));
  const secrets = [...new Set([...clear, ...stored])].filter((name) => !isOfProxy(name));
  const isolated = permitted.isolate_network;
  const open = notEnforced(profile, { isolated });
  return [
    ...(runtime === undefined ? [] : [row('runs_in', 'Runs in', [runtime.kind])]),
    row('reads', 'Reads', sources(true), 'no files of this machine'),
    row('writes', 'Writes', sources(false), 'no files of this machine'),
    ...ownFilesRow(permitted),
    ...userRows(permitted),
    ...(data_paths === undefined ? [] : [row('keeps', 'Keeps', data_paths)]),
    ...sharesRow(profile),
    isolated === true ? isolatedRow(permitted) : networkRow(profile, runtime?.narrow_network),
    row('secrets', 'Secrets', secrets, 'none'),
    row('uses', 'Uses', limitTexts(limitsOf(permitted)), 'as much of this machine as it wants'),
    ...(profile.privileged === true
      ? [caution('privileged', 'Privileged', ['all rights of the engine'])]
      : []),
    ...(open.length === 0 ? [] : [caution('not_enforced', 'Not Enforced', open)]),
  ];
}

/** One elsewhere reaches nothing here; it hears what its clients say. */
function elsewhereRows({ header_forward: headers = {} }: Permitted, url: string): readonly CardRow[] {
  const names = [headers.add_plaintext_headers, headers.add_headers_from_secret].flatMap((one) =>
    Object.keys(one ?? {}),
  );
  return [
    row('runs_in', 'Runs in', [redactUrl(url)]),
    ...(names.length === 0 ? [] : [row('headers', 'Headers', names)]),
  ];
}

/** Volumes that other servers may have as well. */
function sharesRow(profile: PermissionProfile): readonly CardRow[] {
  const shared = profileVolumes(profile).map(
    ({ volume, target, readOnly }) => `the volume ${volume} as ${target}${readOnly ? ', read-only' : ''}`,
  );
  return shared.length === 0 ? [] : [row('shares', 'Shares', shared)];
}

/** What of its image a server in a container may write. */
function ownFilesRow(permitted: Permitted): readonly CardRow[] {
  const { read_only, hardening } = permitted;
  if (read_only === undefined && hardening === undefined) return [];
  if (isReadOnly(permitted)) return [row('own_files', 'Own Files', ['read-only in a container'])];
  const why = read_only === undefined ? ', because it does not start otherwise' : ' in a container';
  return [row('own_files', 'Own Files', [`writable${why}`])];
}

function row(key: string, label: string, values: readonly string[], none = ''): CardRow {
  return { key, label, values, text: shown(values) || none, tone: 'plain' };
}

function caution(key: string, label: string, phrases: readonly string[]): CardRow {
  return { key, label, values: phrases, text: phrases.join('; '), tone: 'caution' };
}

/** As whom it runs where that is not the choice of the runtime or of its image. */
function userRows(permitted: Permitted): readonly CardRow[] {
  const { sandbox_user: user, hardening } = permitted;
  if (hardening === 'other-user' && isReadOnly(permitted))
    return [row('runs_as', 'Runs As', ['an ordinary user, where its image says root'])];
  if (user === undefined || user === '') return [];
  const isRoot = parseConfinedUser(user).uid === 0;
  return [isRoot ? caution('runs_as', 'Runs As', ['root']) : row('runs_as', 'Runs As', [`user ${user}`])];
}

/**
 * Hosts and ports that a profile lists are wishes as long as nothing keeps them; see `notEnforced`. `narrow` is why an open
 * network leads to public hosts only; see `Runtime.narrowNetwork`.
 */
function networkRow({ network }: PermissionProfile, narrow: string | undefined): CardRow {
  const { mode = '', outbound } = network ?? {};
  if (mode === 'none') return row('network', 'Network', [], 'none');
  const { insecure_allow_all = false, allow_host = [], allow_port = [] } = outbound ?? {};
  const listed = insecure_allow_all ? [] : [...allow_host, ...allow_port.map((port) => `port ${port}`)];
  const isPlain = ['', 'bridge', 'default', 'host'].includes(mode);
  const isNarrow = narrow !== undefined && isPlain && mode !== 'host';
  const beside = isPlain ? [] : [`the network ${mode}`];
  const values = [isNarrow ? 'any public host' : 'any host', ...beside];
  const how = isNarrow ? `, and only through a proxy, because ${narrow}` : '';
  const wished = listed.length === 0 ? '' : ` (its profile lists ${shown(listed)})`;
  return { ...row('network', 'Network', values), text: `${shown(values)}${how}${wished}` };
}

/** What its gateway lets through, and what no profile opens. */
function isolatedRow({ permission_profile: profile, allow_runtime_gateway = false }: Permitted): CardRow {
  const reach = allowedHosts(profile);
  const isOpen = allow_runtime_gateway && profile.network?.mode !== 'none';
  const gateway = isOpen ? ["the container engine's gateway addresses"] : [];
  const [hosts, closed] = [allowedTexts(reach), reach.hosts.filter(isNeverReached)];
  const values = [...hosts, ...gateway];
  const here = isOpen ? '' : '127.0.0.1 here, ';
  const never = `never ${here}other servers or a cloud's metadata`;
  const notes = [
    ...(values.length === 0 ? [] : [never]),
    ...(closed.length === 0 ? [] : [`so not ${shown(closed)}`]),
  ];
  return { ...row('network', 'Network', values), text: [shown(values) || 'no host', ...notes].join('; ') };
}

function shown(values: readonly string[]): string {
  const texts = values
    .slice(0, MAX_SHOWN)
    .map((one) => (one.length > MAX_SHOWN_CHARS ? `${one.slice(0, MAX_SHOWN_CHARS)}…` : one));
  const more = values.length - texts.length;
  return `${texts.join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}

import type { AddressPin } from './address.ts';
import type { GitCredentials, GitRepository } from './repository-url.ts';

/** Variables of this process that git may see: where programs, keys, proxies and authorities are. */
const PASSED = [
  'PATH',
  'SSH_AUTH_SOCK',
  'http_proxy',
  'https_proxy',
  'HTTPS_PROXY',
  'all_proxy',
  'ALL_PROXY',
  'no_proxy',
  'NO_PROXY',
  'GIT_SSL_CAINFO',
  'GIT_SSL_CAPATH',
  'SSL_CERT_FILE',
  'SSL_CERT_DIR',
  'SYSTEMROOT',
  'TMPDIR',
  'TEMP',
] as const;

export interface GitSetting {
  readonly own: Readonly<Record<string, string | undefined>>;
  readonly repository: GitRepository;
  readonly credentials: GitCredentials | undefined;
  /** The only key that ssh may use; without it those of the account, as ssh finds them. */
  readonly sshKeyFile?: string | undefined;
  readonly pin: AddressPin;
  /** The folder above which git looks for no repository. */
  readonly ceiling: string;
  /** An empty folder that takes the place of the user's own; ssh, which needs keys and known hosts, does not ask for it. */
  readonly home: string;
}

/**
 * The environment of every git command. Settings travel in it and not on the command line, where every user of the
 * machine could read them; the files of the user and the system are shut out, because they may rewrite addresses, name
 * helpers and run hooks. Neither does git see the user's ~/.netrc, or whoever may name a source could have it send the
 * passwords in there.
 */
export function gitEnvironment({
  own,
  repository,
  credentials,
  pin,
  ceiling,
  home,
  sshKeyFile,
}: GitSetting): Record<string, string> {
  const passed = PASSED.flatMap((name) => {
    const value = sshKeyFile !== undefined && name === 'SSH_AUTH_SOCK' ? undefined : own[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    ...Object.fromEntries(passed),
    HOME: home,
    LC_ALL: 'C',
    GIT_CONFIG_NOSYSTEM: '1',
    GIT_CONFIG_SYSTEM: '/dev/null',
    GIT_CONFIG_GLOBAL: '/dev/null',
    GIT_ATTR_NOSYSTEM: '1',
    GIT_CEILING_DIRECTORIES: ceiling,
    GIT_ALLOW_PROTOCOL: 'http:https:ssh',
    GIT_TERMINAL_PROMPT: '0',
    GIT_LITERAL_PATHSPECS: '1',
    GIT_SSH_COMMAND: [
      ...SSH,
      ...(sshKeyFile === undefined ? [] : onlyKey(sshKeyFile)),
      ...pin.sshOptions,
    ].join(' '),
    GIT_SSH_VARIANT: 'ssh',
    ...(credentials === undefined ? {} : secretsOf(credentials)),
    ...configVariables([
      ...SETTINGS,
      ['remote.origin.url', repository.url],
      ...pin.settings,
      ...(credentials === undefined ? [] : [helperFor(repository)]),
    ]),
  };
}

const SSH = ['ssh', '-o', 'BatchMode=yes', '-o', 'ConnectTimeout=15'] as const;

/** ssh_config(5). The path has passed the shape of a source: nothing in it means anything to a shell or to ssh. */
function onlyKey(file: string): readonly string[] {
  return ['-F', '/dev/null', '-i', file, '-o', 'IdentitiesOnly=yes', '-o', 'IdentityAgent=none'];
}

type Setting = readonly [name: string, value: string];

const SETTINGS: readonly Setting[] = [
  ['core.hooksPath', '/dev/null'],
  ['protocol.version', '2'],
  ['submodule.recurse', 'false'],
  ['fetch.recurseSubmodules', 'false'],
  ['gc.auto', '0'],
  ['maintenance.auto', 'false'],
  // Larger files pass through instead of standing in memory, and one thread unpacks: both for the limit of git-command.ts.
  ['core.bigFileThreshold', '1m'],
  ['pack.threads', '1'],
  ['credential.helper', ''],
  // A connection on which nothing moves ends by itself, should this process be gone.
  ['http.lowSpeedLimit', '1'],
  ['http.lowSpeedTime', '60'],
];

/**
 * git asks a helper for credentials per host, so a redirect to another host does not carry them along, as a fixed header
 * would be. The helper's text is the same for all; the secret comes from the environment of git.
 */
function helperFor({ url }: GitRepository): Setting {
  const script = `!f() { test "$1" = get && printf 'username=%s\\npassword=%s\\n' "$SKEP_GIT_USERNAME" "$SKEP_GIT_PASSWORD"; }; f`;
  return [`credential.${new URL(url).origin}.helper`, script];
}

function secretsOf({ username, password }: GitCredentials): Record<string, string> {
  return { SKEP_GIT_USERNAME: username, SKEP_GIT_PASSWORD: password };
}

/** git-config(1), GIT_CONFIG_COUNT. */
function configVariables(settings: readonly Setting[]): Record<string, string> {
  const pairs = settings.flatMap(([name, value], index) => [
    [`GIT_CONFIG_KEY_${index}`, name],
    [`GIT_CONFIG_VALUE_${index}`, value],
  ]);
  return { GIT_CONFIG_COUNT: String(settings.length), ...Object.fromEntries(pairs) };
}

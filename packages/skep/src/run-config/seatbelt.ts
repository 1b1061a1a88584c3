import { SkepError } from '@skep/core/errors/skep-error.ts';
import { allowedHosts } from '../permissions/allowed-hosts.ts';
import { profileMounts, profileVolumes } from '../permissions/profile.ts';
import type { RunConfig } from './run-config.ts';

/** A workload as a profile for sandbox-exec(1), and what a person has to know of it, one sentence a line. */
export interface SeatbeltExport {
  readonly text: string;
  readonly notes: readonly string[];
}

type Decides = Pick<
  RunConfig,
  'name' | 'permission_profile' | 'isolate_network' | 'transport' | 'target_port' | 'data_paths'
>;

/**
 * Writes what a workload may do as a Seatbelt profile of macOS, which denies everything else: the system and its package
 * to read, its state and mounts to write, no network, its gateway's port on loopback, or all. Skep does not run it (decision
 * 0289). Parameters (`-D`) name what only the machine that runs it knows. Pure. Fails with `run/invalid-config` for a path
 * that no profile can name.
 */
export function toSeatbelt(config: Decides): SeatbeltExport {
  const mounts = profileMounts(config.permission_profile, '/');
  const network = networkOf(config);
  const at = (readOnly: boolean): readonly string[] =>
    mounts.filter((one) => one.readOnly === readOnly).map(({ source }) => text(realPath(source)));
  const [readable, writable] = [
    ['(param "PACKAGE")', ...at(true)],
    ['(param "STATE")', ...at(false)],
  ];
  const given = ['PACKAGE', 'NODE', 'STATE', ...(network === 'gateway' ? ['GATEWAY_PORT'] : [])];
  const lines = [
    `; What ${text(config.name)} may do. Written for macOS and never run there by those who wrote it.`,
    `; sandbox-exec -f THIS_FILE ${given.map((one) => `-D ${one}=…`).join(' ')} COMMAND`,
    '(version 1)',
    '(deny default)',
    ...SYSTEM,
    rule('allow file-read* file-map-executable', [literal('(param "NODE")'), below('(param "PACKAGE")')]),
    ...(readable.length > 1 ? [rule('allow file-read*', readable.slice(1).map(below))] : []),
    rule('allow file-read* file-write*', writable.map(below)),
    // Programs look at each directory on their way, of which they may list none.
    rule(
      'allow file-read-metadata',
      ['(param "NODE")', ...readable, ...writable].map((one) => `(path-ancestors ${one})`),
    ),
    // A set-uid file would run as its owner.
    '(deny file-write-setugid)',
    rule('allow process-exec', [
      below('(param "PACKAGE")'),
      literal('(param "NODE")'),
      below('"/bin"'),
      below('"/usr/bin"'),
    ]),
    ...NETWORK[network],
    ...served(config),
  ];
  return { text: `${lines.join('\n')}\n`, notes: notesOf(config, network) };
}

type Network = 'none' | 'gateway' | 'all';

function networkOf({ permission_profile: profile, isolate_network: isolated }: Decides): Network {
  if (profile.network?.mode === 'none') return 'none';
  if (isolated !== true) return 'all';
  const { all, hosts, ports } = allowedHosts(profile);
  return all || hosts.length > 0 || ports.length > 0 ? 'gateway' : 'none';
}

/** What every program needs to start: no file of a person, no service but those of the system's own libraries. */
const SYSTEM = [
  '(allow process-fork)',
  '(allow process-info* (target self))',
  '(allow signal (target same-sandbox))',
  '(allow sysctl-read)',
  '(allow file-read* (literal "/"))',
  rule(
    'allow file-read* file-map-executable',
    [
      '/System/Library',
      '/System/Cryptexes',
      '/System/Volumes/Preboot/Cryptexes',
      '/usr/lib',
      '/usr/share',
      '/usr/bin',
      '/bin',
      '/Library/Apple',
      '/private/var/db/timezone',
      '/private/etc/ssl',
    ].map((one) => below(text(one))),
  ),
  rule(
    'allow file-read* file-write*',
    ['/dev/null', '/dev/zero', '/dev/tty'].map((one) => literal(text(one))),
  ),
  rule(
    'allow file-read*',
    ['/dev/random', '/dev/urandom'].map((one) => literal(text(one))),
  ),
];

const NETWORK: Readonly<Record<Network, readonly string[]>> = {
  none: [],
  gateway: ['(allow network-outbound (remote ip (string-append "localhost:" (param "GATEWAY_PORT"))))'],
  all: [
    '(allow network-outbound (remote ip))',
    rule('allow network-outbound', [literal('"/private/var/run/mDNSResponder"')]),
    rule(
      'allow file-read*',
      ['/private/etc/hosts', '/private/etc/resolv.conf'].map((one) => literal(text(one))),
    ),
    '(allow mach-lookup (global-name "com.apple.SystemConfiguration.DNSConfiguration"))',
  ],
};

/** A server that is spoken to over HTTP listens on loopback, on its own port alone. */
function served({ transport, target_port: port }: Decides): readonly string[] {
  if (transport === 'stdio' || port === undefined) return [];
  return [`(allow network-bind network-inbound (local ip "localhost:${port}"))`];
}

function notesOf(config: Decides, network: Network): readonly string[] {
  const moved = profileMounts(config.permission_profile, '/').filter(
    ({ source, target }) => source !== target,
  );
  return [
    'This profile was not tried on macOS, where Skep has no sandbox of its own; what it holds there is for you to see.',
    'Files that ignore files hide are not hidden by it, and nothing limits memory, processes or disk.',
    ...moved.map(({ source, target }) => `"${source}" is at its own path there, not at "${target}".`),
    ...(network === 'gateway'
      ? ['The hosts of its profile are allowed by a gateway at GATEWAY_PORT, which is yours to run.']
      : []),
    ...((config.data_paths ?? []).length + profileVolumes(config.permission_profile).length > 0
      ? ['What it keeps goes below STATE; tell it where that is.']
      : []),
  ];
}

function rule(what: string, filters: readonly string[]): string {
  return `(${what}\n${filters.map((one) => `  ${one}`).join('\n')})`;
}

function below(value: string): string {
  return `(subpath ${value})`;
}

function literal(value: string): string {
  return `(literal ${value})`;
}

/** As the kernel knows it: three directories of macOS are links. */
const realPath = (path: string): string => path.replace(/^\/(?=(?:tmp|var|etc)(?:\/|$))/, '/private/');

/** A string of the profile's language, of which nothing can be a rule. */
function text(value: string): string {
  if (!/\p{Cc}/u.test(value)) return `"${value.replaceAll(/["\\]/g, String.raw`\$&`)}"`;
  throw new SkepError('run/invalid-config', {
    message: `${JSON.stringify(value)} cannot be named in a profile of macOS`,
    hint: 'mount a directory whose path has no control characters',
  });
}

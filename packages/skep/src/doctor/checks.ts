import { starterOf } from '../autostart/autostart.ts';
import { lookAtCatalogue } from './catalogue.ts';
import { lookAtClients } from './clients.ts';
import type { Check } from './check.ts';
import {
  lookAtCertificates,
  lookAtClock,
  lookAtConfiguration,
  lookAtDisk,
  lookAtProgram,
  lookAtProxies,
} from './machine.ts';
import { lookAtPackages } from './packages.ts';
import {
  lookAtEngine,
  lookAtLeftovers,
  lookAtLimits,
  lookAtNetwork,
  lookAtRuntime,
  lookAtSandbox,
} from './runtimes.ts';
import { lookAtSecrets } from './secrets.ts';
import {
  lookAtCaches,
  lookAtDirectories,
  lookAtFilePermissions,
  lookAtHosting,
  lookAtLocks,
  lookAtWorkloadFiles,
} from './state.ts';
import { lookAtFrontDoor, lookAtReboots, lookAtSupervisor } from './supervisor.ts';

type Row = Omit<Check, 'code'>;

/** Everything that `skep doctor` looks at, in the order in which it is shown. A code is never given to another check. */
// One line a member, however long: it is read as a table.
// prettier-ignore
const ROWS = {
  'SKEP-D001': { title: 'Program', look: lookAtProgram, about: 'Node and the program are where supervisors are started from', remedy: 'install Skep, or Node, again' },
  'SKEP-D002': { title: 'Disk', look: lookAtDisk, about: 'There is room for what Skep keeps', remedy: 'make room there' },
  'SKEP-D003': { title: 'Clock', look: lookAtClock, about: 'The clock is not behind', remedy: 'set the clock; certificates count as not valid yet' },
  'SKEP-D004': { title: 'Certificates', look: lookAtCertificates, about: '`SSL_CERT_FILE`, `NODE_EXTRA_CA_CERTS` and `ca_certificate_path` name readable certificates', remedy: 'name a readable PEM file, or unset it' },
  'SKEP-D005': { title: 'Proxies', look: lookAtProxies, about: '`HTTPS_PROXY`, `HTTP_PROXY` and `ALL_PROXY` are addresses', remedy: 'give it as http://host:port, or unset it' },
  'SKEP-D010': { title: 'Runtime', look: lookAtRuntime, about: 'Servers can be run', remedy: 'start a container engine, or install bubblewrap' },
  'SKEP-D011': { title: 'Container engine', look: lookAtEngine, about: 'A container engine is found, may be used and answers', remedy: 'start the engine' },
  'SKEP-D012': { title: 'Sandbox', look: lookAtSandbox, about: 'bubblewrap is there and confines on this kernel', remedy: 'install bubblewrap, and allow user namespaces' },
  'SKEP-D013': { title: 'Sandbox network', look: lookAtNetwork, about: 'Servers in the sandbox that are not isolated reach what this machine reaches (slirp4netns, `/dev/net/tun`)', remedy: 'install slirp4netns, and allow the use of /dev/net/tun' },
  'SKEP-D014': { title: 'Packages', look: lookAtPackages, about: 'What fetches packages for the sandbox is there: npm, the Python of the system with pip, Go', remedy: 'install what is missing, or start a container engine' },
  'SKEP-D015': { title: 'Limits', look: lookAtLimits, about: 'Something holds how much memory, processors, processes and disk a server may use', remedy: 'run Skep where it may make control groups, or with a container engine' },
  'SKEP-D020': { title: 'Directories', look: lookAtDirectories, about: 'The directories of Skep are this user\'s, who can use them and nobody else can change them', remedy: 'skep doctor --fix sets their permissions' },
  'SKEP-D021': { title: 'Configuration', look: lookAtConfiguration, about: 'The configuration file can be read', remedy: 'correct the named place' },
  'SKEP-D022': { title: 'Saved servers', look: lookAtWorkloadFiles, about: 'What is kept of each server can be read', remedy: 'remove them with skep rm, and run them again' },
  'SKEP-D023': { title: 'Private files', look: lookAtFilePermissions, about: 'Nobody else may read what was given to servers', remedy: 'skep doctor --fix shuts others out' },
  'SKEP-D024': { title: 'Locks', look: lookAtLocks, about: 'No lock of a server that is gone is left', remedy: 'skep doctor --fix removes them' },
  'SKEP-D025': { title: 'Caches', look: lookAtCaches, about: 'What is only there to be faster is whole', remedy: 'skep doctor --fix removes them' },
  'SKEP-D030': { title: 'Supervisor', look: lookAtSupervisor, about: 'The process that hosts servers answers, and is of this version', remedy: 'skep list, or any other command, starts another' },
  'SKEP-D031': { title: 'Hosting', look: lookAtHosting, about: 'Every server that should run is hosted', remedy: 'skep list, or any other command, takes them up again' },
  'SKEP-D032': { title: 'Left behind', look: lookAtLeftovers, about: 'Nothing runs for a server that is gone', remedy: 'remove it with skep rm' },
  'SKEP-D033': { title: 'Reboots', look: ({ context }) => lookAtReboots(starterOf(context)), about: 'What starts servers after a reboot starts this Skep', remedy: 'write it anew with skep autostart on' },
  'SKEP-D034': { title: 'Front door', look: lookAtFrontDoor, about: 'The one address of all servers is open, or its port is free', remedy: 'choose another port with skep config set front-port N' },
  'SKEP-D040': { title: 'Catalogue', look: lookAtCatalogue, about: 'The catalogue can be reached and read', remedy: 'choose another with skep config set-registry' },
  'SKEP-D041': { title: 'Clients', look: lookAtClients, about: 'The configuration files of connected clients can be read and written', remedy: 'mend the file, then connect the client again with skep connect' },
  'SKEP-D042': { title: 'Secrets', look: lookAtSecrets, about: 'The secrets provider can be used, and opened without a question', remedy: 'choose another with skep secret setup' },
} as const satisfies Readonly<Record<string, Row>>;

export const CHECKS: readonly Check[] = Object.entries<Row>(ROWS).map(([code, row]) => ({ code, ...row }));

/** Those that `skep runtime check` asks. */
export const RUNTIME_CHECK = { code: 'SKEP-D010', ...ROWS['SKEP-D010'] } satisfies Check;

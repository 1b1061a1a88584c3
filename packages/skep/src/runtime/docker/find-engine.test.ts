import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { userDirectory, userFile } from '../user-file.ts';
import { EngineClient } from './client.ts';
import { endpointText, type Endpoint } from './endpoint.ts';
import { findEngine, type EngineSearch } from './find-engine.ts';

let root: string;
const servers: http.Server[] = [];
beforeEach(async () => {
  root = await mkdtemp(path.join(tmpdir(), 'skep-find-'));
});
afterEach(async () => {
  for (const server of servers.splice(0)) await new Promise((resolve) => server.close(resolve));
  await rm(root, { recursive: true, force: true });
});

/** An engine that answers or never does, or one whose socket is left of an engine that ended. */
async function listen(
  file: string,
  how: 'answers' | 'dead' | 'broken' | 'silent' = 'answers',
): Promise<void> {
  const socket = path.join(root, file);
  await mkdir(path.dirname(socket), { recursive: true });
  if (how === 'dead') return writeFile(socket, '');
  const server = http.createServer((_, response) => {
    if (how === 'silent') return;
    response.writeHead(how === 'broken' ? 500 : 200, { 'api-version': '1.43' }).end('OK');
  });
  await new Promise<void>((resolve) => server.listen(socket, resolve));
  servers.push(server);
  return undefined;
}

async function context(name: string, docker: object, tlsFiles: Readonly<Record<string, string>> = {}) {
  const id = createHash('sha256').update(name).digest('hex');
  const at = (...rest: string[]): string => path.join(root, 'home/.docker/contexts', ...rest);
  await mkdir(at('meta', id), { recursive: true });
  await writeFile(at('meta', id, 'meta.json'), JSON.stringify({ Name: name, Endpoints: { docker } }));
  for (const [file, text] of Object.entries(tlsFiles)) {
    await mkdir(at('tls', id, 'docker'), { recursive: true });
    await writeFile(at('tls', id, 'docker', file), text);
  }
}

const use = async (name: string): Promise<void> => {
  await mkdir(path.join(root, 'home/.docker'), { recursive: true });
  await writeFile(path.join(root, 'home/.docker/config.json'), JSON.stringify({ currentContext: name }));
};

/** A search on a machine of this test's own; `ROOT` in variables is where it lies. */
function search(env: Readonly<Record<string, string>> = {}, more: Partial<EngineSearch> = {}) {
  const own = { XDG_RUNTIME_DIR: 'ROOT/run/user', TMPDIR: 'ROOT/tmp', ...env };
  const given = Object.entries(own).map(([name, value]) => [name, value.replaceAll('ROOT', root)]);
  return findEngine({
    env: Object.fromEntries(given) as Record<string, string>,
    home: path.join(root, 'home'),
    machineDir: path.join(root, 'var/run'),
    readText: userFile,
    list: userDirectory,
    exists: async (file) => (await userDirectory(path.dirname(file))).includes(path.basename(file)),
    hasProgram: () => false,
    ping: async (endpoint) => void (await new EngineClient(endpoint).about(AbortSignal.timeout(5_000))),
    ...more,
  });
}

const found = async (...given: Parameters<typeof search>): Promise<string> => {
  const finding = await search(...given);
  return 'found' in finding
    ? endpointText(finding.found).replace(root, '')
    : finding.refusals
        .filter(({ why }) => why !== 'does not exist')
        .map(({ strategy, why }) => `${strategy}: ${why}`)
        .join('; ')
        .replaceAll(root, '');
};

/** In the order in which they are tried. */
const SOCKETS = [
  'var/run/podman/podman.sock',
  'run/user/podman/podman.sock',
  'home/.local/share/containers/podman/machine/podman.sock',
  'tmp/podman/podman-machine-default-api.sock',
  'var/run/docker.sock',
  'run/user/docker.sock',
  'home/.docker/run/docker.sock',
  'home/.docker/desktop/docker.sock',
  'home/.rd/docker.sock',
  'home/.orbstack/run/docker.sock',
  'home/.colima/default/docker.sock',
] as const;

describe('the engine that is found', () => {
  test.each(SOCKETS.map((file, at) => [file, SOCKETS.slice(0, at)] as const))(
    'is the one at %s where those before it are dead and those behind it answer',
    async (file, before) => {
      for (const [at, one] of before.entries()) await listen(one, at % 2 === 0 ? 'dead' : 'broken');
      for (const one of SOCKETS.slice(before.length)) await listen(one);
      expect(await found()).toBe(`unix:///${file}`);
    },
  );

  test.each<[string, Readonly<Record<string, string>>, string]>([
    ['that a variable of Podman names', { SKEP_PODMAN_SOCKET: 'ROOT/p', SKEP_DOCKER_SOCKET: 'ROOT/d' }, '/p'],
    ['that a variable of Docker names', { SKEP_DOCKER_SOCKET: 'ROOT/d', SKEP_COLIMA_SOCKET: 'ROOT/p' }, '/d'],
    ['that a variable of Colima names', { SKEP_COLIMA_SOCKET: 'unix://ROOT/p', DOCKER_HOST: 'x' }, '/p'],
    ['that DOCKER_HOST names', { DOCKER_HOST: 'unix://ROOT/d', DOCKER_CONTEXT: 'mine' }, '/d'],
    ['of the context that DOCKER_CONTEXT names', { DOCKER_CONTEXT: 'other' }, '/d'],
    ['of the current context', {}, '/p'],
    ['of the sockets, for the default context', { DOCKER_CONTEXT: 'default' }, '/var/run/docker.sock'],
  ])('is the one %s', async (_which, env, expected) => {
    for (const one of ['p', 'd', 'var/run/docker.sock']) await listen(one);
    await context('mine', { Host: `unix://${root}/p` });
    await context('other', { Host: `unix://${root}/d` });
    await use('mine');
    expect(await found(env)).toBe(`unix://${expected}`);
  });

  test('is taken while a place behind it hangs, as a network mount can', async () => {
    const answers = 'var/run/docker.sock';
    await listen(answers);
    const behind: readonly string[] = SOCKETS.slice(SOCKETS.indexOf(answers) + 1);
    const exists = async (file: string): Promise<boolean> => {
      const place = path.relative(root, file);
      return behind.includes(place) ? new Promise(() => {}) : place === answers;
    };
    expect(await found({}, { exists })).toBe(`unix:///${answers}`);
  });

  test('is the next one where one says nothing in its time, unless that was named', async () => {
    await listen('var/run/docker.sock', 'silent');
    await listen('home/.rd/docker.sock');
    const impatient = {
      ping: async (endpoint: Endpoint): Promise<void> =>
        void (await new EngineClient(endpoint).about(AbortSignal.timeout(30))),
    };
    expect(await found({}, impatient)).toBe('unix:///home/.rd/docker.sock');
    expect(await found({ DOCKER_HOST: 'unix://ROOT/var/run/docker.sock' }, impatient)).toBe(
      'DOCKER_HOST: the container engine at unix:///var/run/docker.sock does not answer: it said nothing in time',
    );
  });

  test('is none other where what a variable names is dead', async () => {
    await listen('var/run/docker.sock');
    await listen('d', 'dead');
    expect(await found({ DOCKER_HOST: 'unix://ROOT/d' })).toMatch(/^DOCKER_HOST: .*nothing listens there$/);
  });

  test('is the one of a saved workload, whatever the person uses by now', async () => {
    for (const one of ['p', 'd']) await listen(one);
    await context('mine', { Host: `unix://${root}/p` });
    await use('mine');
    const env = { DOCKER_HOST: 'unix://ROOT/p', SKEP_DOCKER_SOCKET: 'ROOT/p', DOCKER_TLS_VERIFY: '1' };
    expect(await found(env, { saved: `unix://${root}/d` })).toBe('unix:///d');
  });
});

describe('what would help is told', () => {
  const hintOf = async (...given: Parameters<typeof search>): Promise<string | undefined> => {
    const finding = await search(...given);
    return 'refusals' in finding ? finding.refusals.find(({ hint }) => hint !== undefined)?.hint : undefined;
  };

  test('for a Podman that is installed and has no socket', async () => {
    const installed = { hasProgram: (): boolean => true };
    expect(await hintOf({}, installed)).toBe('systemctl --user enable --now podman.socket');
    expect(await found({}, installed)).toBe('Podman: it is installed, and its socket is not enabled');
    const onMac = { hasProgram: (name: string): boolean => name === 'podman' };
    expect(await hintOf({}, onMac)).toBe('podman machine start');
    await listen('var/run/docker.sock');
    expect(await hintOf({}, installed)).toBeUndefined();
  });

  test('for ssh', async () => {
    expect(await found({ DOCKER_HOST: 'ssh://me@build' })).toBe(
      'DOCKER_HOST: engine address "ssh://…@build" cannot be used: ssh connections are not supported',
    );
    expect(await hintOf({ DOCKER_HOST: 'ssh://me@build' })).toMatch(/^forward its socket.*ssh -nNT -L/);
  });

  test('for a context that does not verify its engine', async () => {
    await context('loose', { Host: 'tcp://192.0.2.1:2376', SkipTLSVerify: true });
    expect(await found({ DOCKER_CONTEXT: 'loose' })).toContain('"loose" does not verify its engine');
    expect(await hintOf({ DOCKER_CONTEXT: 'loose' })).toContain('docker context update loose');
  });

  test.each<[string, Readonly<Record<string, string>>, RegExp]>([
    ['no certificate', { 'ca.pem': 'no certificate' }, /ca\.pem holds no certificate/],
    ['a certificate without its key', { 'cert.pem': 'x' }, /key\.pem is missing/],
    ['a key without its certificate', { 'key.pem': 'x' }, /cert\.pem is missing/],
  ])('for TLS files with %s', async (_what, files, why) => {
    await context('tls', { Host: 'tcp://127.0.0.1:1' }, files);
    expect(await found({ DOCKER_CONTEXT: 'tls' })).toMatch(why);
    expect(await hintOf({ DOCKER_CONTEXT: 'tls' })).toContain('DOCKER_CERT_PATH');
  });
});

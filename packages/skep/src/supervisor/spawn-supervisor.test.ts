import { spawnSync } from 'node:child_process';
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import * as fc from 'fast-check';
import { expect, test, afterEach, beforeEach, describe } from 'vitest';
import { supervisorEnv, WATCHER } from './spawn-supervisor.ts';

test('a supervisor gets what it needs to find its places, its engine and its certificates', () => {
  const needed = {
    HOME: '/home/me',
    PATH: '/bin',
    XDG_STATE_HOME: '/state',
    DOCKER_HOST: 'unix:///run/docker.sock',
    NODE_EXTRA_CA_CERTS: '/ca.pem',
    SKEP_RUNTIME: 'sandbox',
  };
  expect(supervisorEnv({ env: needed, cwd: '/project' })).toEqual({ ...needed, SKEP_DETACHED: '1' });
});

test('a supervisor finds the cluster that its shell means', () => {
  const needed = {
    KUBECONFIG: '/home/me/project/cluster.yaml',
    SKEP_KUBE_NAMESPACE: 'tools',
    KUBERNETES_SERVICE_HOST: '10.0.0.1',
    KUBERNETES_SERVICE_PORT: '443',
  };
  const given = { ...needed, KUBECONFIG: 'cluster.yaml' };
  expect(supervisorEnv({ env: given, cwd: '/home/me/project' })).toEqual({ ...needed, SKEP_DETACHED: '1' });
});

test('a path that the shell reads against its own directory means the same to a supervisor', () => {
  const env = { DOCKER_CONFIG: 'config/docker', SSL_CERT_FILE: '../ca.pem', TMPDIR: '' };
  expect(supervisorEnv({ env, cwd: '/home/me/project' })).toEqual({
    DOCKER_CONFIG: '/home/me/project/config/docker',
    SSL_CERT_FILE: '/home/me/ca.pem',
    TMPDIR: '',
    SKEP_DETACHED: '1',
  });
});

test('a supervisor gets no secret of the shell that it was started from', () => {
  const secrets = {
    GITHUB_TOKEN: 'x',
    AWS_SECRET_ACCESS_KEY: 'x',
    SKEP_SECRET_TOKEN: 'x',
    SKEP_SECRETS_PASSWORD: 'x',
    REGISTRY_PASSWORD: 'x',
    NPM_TOKEN: 'x',
    HTTPS_PROXY: 'http://me:hunter2@proxy.example',
    NODE_OPTIONS: '--require /tmp/evil.js',
    LD_PRELOAD: '/tmp/evil.so',
  };
  const env = { PATH: '/bin', ...secrets };
  expect(supervisorEnv({ env, cwd: '/' })).toEqual({ PATH: '/bin', SKEP_DETACHED: '1' });
});

test('whatever the environment holds, only known names pass, with the values that they had', () => {
  const env = fc.dictionary(
    fc.oneof(fc.constantFrom('HOME', 'PATH', 'DOCKER_HOST', '__proto__', 'constructor'), fc.string()),
    fc.option(fc.string(), { nil: undefined }),
  );
  fc.assert(
    fc.property(env, (given) => {
      const { SKEP_DETACHED: detached, ...passed } = supervisorEnv({ env: given, cwd: '/' });
      expect(detached).toBe('1');
      for (const [name, value] of Object.entries(passed)) {
        expect(name).toMatch(/^[A-Z_]+$/);
        expect(value).toBe(given[name]);
      }
    }),
  );
});

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'skep-watcher-'));
  await program('sleep', `echo "$1" >> ${dir}/slept`);
  await program('date', `cat ${dir}/now`);
  await writeFile(join(dir, 'now'), '1000\n');
});
afterEach(() => rm(dir, { recursive: true }));

async function program(name: string, text: string): Promise<void> {
  await writeFile(join(dir, name), `#!/bin/sh\n${text}\n`);
  await chmod(join(dir, name), 0o755);
}

/** Watches a supervisor that ends in these ways, one after the other, and then the last one for ever. */
async function watched(
  ...endings: readonly string[]
): Promise<{ starts: number; slept: string; status: number | null }> {
  const cases = endings.map((ending, index) => `${index + 1}) ${ending};;`).join('\n');
  await program(
    'supervisor',
    `echo "$SKEP_WATCHER $PPID" >> ${dir}/starts
case $(wc -l < ${dir}/starts | tr -d ' ') in ${cases}\n*) ${endings.at(-1) ?? ''};; esac`,
  );
  const { status } = spawnSync('/bin/sh', ['-c', WATCHER, 'skep-watcher', join(dir, 'supervisor')], {
    env: { PATH: `${dir}:/usr/bin:/bin` },
    stdio: 'ignore',
    timeout: 20_000,
  });
  const starts = (await readFile(join(dir, 'starts'), 'utf8')).trim().split('\n');
  // Each start is told who watches it.
  for (const line of starts) expect(new Set(line.split(' ')).size).toBe(1);
  const slept = await readFile(join(dir, 'slept'), 'utf8').catch(() => '');
  return { starts: starts.length, slept: slept.trim().replaceAll('\n', ' '), status };
}

describe('the watcher', () => {
  test('ends with a supervisor that ends by itself', async () => {
    expect(await watched('exit 0')).toEqual({ starts: 1, slept: '', status: 0 });
  });
  test.each(['exit 1', 'exit 126', 'exit 127'])(
    'does not repeat a first start that failed with %s',
    async (how) => {
      expect(await watched(how)).toMatchObject({ starts: 1, status: 1 });
    },
  );
  test('starts a killed supervisor again at once', async () => {
    expect(await watched('kill -9 $$', 'exit 0')).toEqual({ starts: 2, slept: '0', status: 0 });
  });
  test('starts one again that fails later', async () => {
    expect(await watched('kill -9 $$', 'exit 1', 'exit 0')).toMatchObject({ starts: 3, status: 0 });
  });
  test('starts one again that came up and fails after a long life', async () => {
    const lived = `echo $(($(cat ${dir}/now) + 60)) > ${dir}/now; exit 1`;
    expect(await watched(lived, 'exit 0')).toEqual({ starts: 2, slept: '0', status: 0 });
  });
  test.each(['exit 129', 'exit 130', 'exit 143', 'kill -15 $$'])(
    'does not bring back one that was asked to end, as with %s',
    async (how) => {
      expect(await watched(how)).toEqual({ starts: 1, slept: '', status: 0 });
    },
  );
  test('waits longer after every quick death, and gives up', async () => {
    expect(await watched('kill -9 $$')).toEqual({ starts: 8, slept: '0 0 4 9 16 25 36', status: 1 });
  });
  test('forgets quick deaths when one has lived for a minute', async () => {
    const lived = `echo $(($(cat ${dir}/now) + 60)) > ${dir}/now; kill -9 $$`;
    const quick = 'kill -9 $$';
    expect(await watched(quick, quick, quick, lived, 'exit 0')).toEqual({
      starts: 5,
      slept: '0 0 4 0',
      status: 0,
    });
  });
});

import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { ProbeCaller } from '@skep/cli/runtime/contract/probe-caller.ts';
import { runtimeContract } from '@skep/cli/runtime/contract.ts';
import type { ContractHarness, ContractPackage } from '@skep/cli/runtime/contract/bench.ts';
import type { PackageSource } from '@skep/cli/protocol/reference.ts';
import type { RuntimeEnvironment } from '@skep/cli/runtime/environment.ts';
import type { Prepared, Report, WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import { findBubblewrap } from '@skep/cli/runtime/sandbox/bubblewrap.ts';
import { SandboxRuntime } from '@skep/cli/runtime/sandbox/sandbox-runtime.ts';
import type { RuntimeKind } from '@skep/cli/settings/identity.ts';
import { MOODY_SERVER } from './fixtures/moody-server.ts';
import { GO_SERVER, moduleProxyOf } from './fixtures/module-proxy.ts';
import { npmRegistryWith } from './fixtures/npm-registry.ts';
import { pythonIndexOf, pythonServer } from './fixtures/python-index.ts';
import { engine, ensureNodeBase, ensureScriptImage } from './images.ts';
import { component, title } from './require.ts';
import { openRuntime, TEST_TOKEN, testEnvironment } from './runtimes.ts';

const engineThere = await component('engine');
const sandboxThere = await component('sandbox');
const npmThere = await component('npm');
const pythonThere = await component('python');
const goThere = await component('go');

process.env['SKEP_CONTRACT_SECRET'] = 'must not be seen inside';

const probeScript = path.join(import.meta.dirname, 'fixtures/probe-server.mjs');
const PROBE_IMAGE = 'skep-test/probe:1';
/** A name of its own, so that no other file builds the same image at the same time. */
const BASE = 'skep-test/node:runtime';
const silent: Report = { step() {}, detail() {} };

describe.skipIf(!engineThere.available)(title('the docker runtime', engineThere), () => {
  const directories = temporaryDirectories();
  runtimeContract({
    open: () => openRuntime('docker', directories),
    probeServer: () => ensureScriptImage(PROBE_IMAGE, readFileSync(probeScript, 'utf8')),
    missing: {
      source: { kind: 'image', reference: '127.0.0.1:9/not/there:1' },
      code: 'runtime/image-not-found',
    },
    hold: (spec) => holder('docker', directories, spec),
    isolates: true,
    leftovers: engineLeftovers,
    close: async () => rmSync(directories.root, { recursive: true, force: true }),
  });
});

describe.skipIf(!sandboxThere.available)(title('the sandbox runtime', sandboxThere), () => {
  const directories = temporaryDirectories();
  const environment = testEnvironment(directories);
  const harness: ContractHarness = {
    open: () => openRuntime('sandbox', directories),
    async probeServer(runtime) {
      const script = readFileSync(probeScript, 'utf8');
      await using registry = await npmRegistryWith('skep-probe', script);
      const env = { ...environment.env, npm_config_registry: registry.url };
      const own = new SandboxRuntime({ ...environment, env }, await findBubblewrap(environment));
      const source = { kind: 'package', ecosystem: 'npm', name: 'skep-probe' } as const;
      const { signal } = new AbortController();
      const { reference } = await own.prepare({ source, addPackages: [], report: silent, signal });
      expect(await runtime.has(reference)).toBe(true);
      return reference;
    },
    missing: { source: { kind: 'image', reference: 'some/image:1' }, code: 'runtime/image-needs-engine' },
    packages: packagesFor(environment),
    hold: (spec) => holder('sandbox', directories, spec),
    isolates: true,
    leftovers: async () => sandboxLeftovers(directories.dataDir, directories.cacheDir),
    close: async () => rmSync(directories.root, { recursive: true, force: true }),
  };
  runtimeContract(harness);
});

/** A package of each kind that this machine can fetch, from a registry on loopback. */
function packagesFor(environment: RuntimeEnvironment): readonly ContractPackage[] {
  const fetchFrom = (ecosystem: PackageSource['ecosystem'], name: string, serve: Serve) => {
    const fetch = async (signal: AbortSignal): Promise<Prepared> => {
      await using registry = await serve();
      const env = { ...environment.env, [registry.variable]: registry.url, GONOSUMDB: '*' };
      const runtime = new SandboxRuntime({ ...environment, env }, await findBubblewrap(environment));
      const source = { kind: 'package', ecosystem, name } as const;
      return await runtime.prepare({ source, addPackages: [], report: silent, signal });
    };
    return { what: ecosystem, fetch };
  };
  const npm = async () =>
    Object.assign(await npmRegistryWith('contract-server', MOODY_SERVER), {
      variable: 'npm_config_registry',
    });
  const go = async () => Object.assign(await moduleProxyOf([GO_MODULE]), { variable: 'GOPROXY' });
  const pypi = async () =>
    Object.assign(await pythonIndexOf([pythonServer('contract-server')]), { variable: 'PIP_INDEX_URL' });
  return [
    fetchFrom('npm', 'contract-server', npm),
    ...(goThere.available ? [fetchFrom('go', 'example.test/contract-server', go)] : []),
    ...(pythonThere.available ? [fetchFrom('pypi', 'contract-server', pypi)] : []),
  ];
}

const GO_MODULE = { path: 'example.test/contract-server', files: { 'main.go': GO_SERVER } };

type Serve = () => Promise<AsyncDisposable & { readonly url: string; readonly variable: string }>;

describe.each<[RuntimeKind, typeof engineThere]>([
  ['docker', engineThere],
  ['sandbox', sandboxThere],
])('a public npm package', (kind, there) => {
  const directories = temporaryDirectories();
  const missing = !there.available || !npmThere.available;
  const prepareFor = (name: string, signal: AbortSignal) => async () => {
    const runtime = await openRuntime(kind, directories);
    const source = { kind: 'package', ecosystem: 'npm', name, version: '2026.8.31' } as const;
    const caFile = process.env['NODE_EXTRA_CA_CERTS'] ?? process.env['SSL_CERT_FILE'];
    const caCert = caFile === undefined ? {} : { caCert: () => readFile(caFile, 'utf8') };
    return runtime.prepare({ source, addPackages: [], report: silent, signal, baseImage: BASE, ...caCert });
  };

  afterAll(() => rmSync(directories.root, { recursive: true, force: true }));

  test.skipIf(missing)(title(`network: runs on ${kind} and answers`, there, npmThere), async () => {
    if (kind === 'docker') await ensureNodeBase(BASE);
    const runtime = await openRuntime(kind, directories);
    const prepare = prepareFor('@modelcontextprotocol/server-everything', new AbortController().signal);
    const prepared = await prepare();
    expect(await prepare()).toEqual(prepared);
    const name = `everything-${TEST_TOKEN}`;
    const base = {
      args: [],
      env: {},
      labels: { 'skep.test': 'runtime' },
      mounts: [],
      ports: [],
      privileged: false,
    };
    try {
      await runtime.create({ ...base, name, reference: prepared.reference, stdio: true, network: 'none' });
      const probe = new ProbeCaller(await runtime.attach(name));
      await runtime.start(name);
      const hello = {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'test', version: '0' },
      };
      expect(await probe.call('initialize', hello)).toMatchObject({ protocolVersion: '2025-06-18' });
    } finally {
      await runtime.remove(name);
      await runtime.discard(prepared.reference);
    }
    await expect(
      runtime.create({ ...base, name, reference: prepared.reference, stdio: true, network: 'none' }),
    ).rejects.toThrow();
    if (kind === 'docker') expect(await engineLeftovers()).toEqual([]);
    else expect(sandboxLeftovers(directories.dataDir, directories.cacheDir)).toEqual([]);
  });

  test.skipIf(missing)(
    title(`network: one that does not exist fails on ${kind}`, there, npmThere),
    async () => {
      const prepare = prepareFor(
        '@modelcontextprotocol/skep-test-does-not-exist',
        new AbortController().signal,
      );
      await expect(prepare()).rejects.toMatchObject({ code: 'runtime/package-not-found' });
    },
  );

  test.skipIf(missing)(
    title(`network: an abort in the middle leaves nothing on ${kind}`, there, npmThere),
    async () => {
      const leaving = new AbortController();
      const timer = setTimeout(() => leaving.abort(), 2_500);
      const prepare = prepareFor('@modelcontextprotocol/server-everything', leaving.signal);
      await expect(prepare()).rejects.toMatchObject({ code: 'runtime/aborted' });
      clearTimeout(timer);
      if (kind === 'docker') await expect.poll(engineLeftovers, { timeout: 10_000 }).toEqual([]);
      else expect(sandboxLeftovers(directories.dataDir, directories.cacheDir)).toEqual([]);
    },
  );
});

function temporaryDirectories() {
  const root = mkdtempSync(path.join(tmpdir(), 'skep-runtime-'));
  return { root, dataDir: path.join(root, 'data'), cacheDir: path.join(root, 'cache') };
}

function holder(kind: RuntimeKind, directories: { dataDir: string; cacheDir: string }, spec: WorkloadSpec) {
  const script = path.join(import.meta.dirname, 'runtime-holder.ts');
  const args = [script, kind, directories.dataDir, directories.cacheDir, JSON.stringify(spec)];
  return spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
}

interface Listed {
  readonly Id: string;
  readonly Labels?: Readonly<Record<string, string>> | null;
}

/**
 * What these tests left on the engine, which others use at the same time: workloads by their test label, images and
 * layers by the tokens of our builds. What becomes of the network that all share, `runtime-network.test.ts` proves.
 */
async function engineLeftovers(): Promise<string[]> {
  const [containers, images] = await Promise.all([managed('containers/json'), managed('images/json')]);
  const ours = containers.filter((one) => ['contract', 'runtime'].includes(one.Labels?.['skep.test'] ?? ''));
  // The image of the gateway is made once, for whoever comes next.
  const built = images.filter(
    ({ Labels }) => Labels?.['skep.build']?.startsWith(TEST_TOKEN) && Labels['skep.gateway'] !== 'true',
  );
  return [...ours, ...built].map((one) => `${one.Id} ${JSON.stringify(one.Labels)}`);
}

async function managed(kind: string): Promise<Listed[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: ['skep.managed=true'] }));
  return JSON.parse((await engine('GET', `/${kind}?all=1&filters=${filters}`)).text) as Listed[];
}

/** State directories, half-fetched trees and sandbox processes. */
function sandboxLeftovers(dataDir: string, cacheDir: string): string[] {
  const entries = (directory: string) => (existsSync(directory) ? readdirSync(directory) : []);
  const trees = entries(path.join(cacheDir, 'packages')).filter(
    (name) => !name.startsWith('npm-skep-probe@'),
  );
  return [...entries(path.join(dataDir, 'sandbox')), ...trees];
}

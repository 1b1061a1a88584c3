import { lstat, mkdir, readdir, realpath } from 'node:fs/promises';
import path from 'node:path';
import type { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { bridgeAroundScript } from '../gateway/bridge.ts';
import type { PackageGateway } from '../gateway/gateway.ts';
import { notFetched } from '../gateway/failure.ts';
import { goFailure } from '../go/failure.ts';
import { goGateway } from '../go/gateway.ts';
import { copyTo, findLocalModule, localVersion } from '../go/local-module.ts';
import { GoProxies } from '../go/proxies.ts';
import { findGo, GO_ROOT, toolchainMounts, type GoToolchain } from '../go/toolchain.ts';
import { checkFiles } from './check-tree.ts';
import { INSIDE, installConfined } from './confined-install.ts';
import type { Fetch, FoundPackage, Lookup } from './found-package.ts';
import {
  compiledLibrary,
  countPackages,
  GO_BUILD,
  GO_LIBRARY,
  GO_SETTINGS,
  linkLibrary,
} from './go-library.ts';
import { APP, NODE, treeId } from './package-trees.ts';
import { writeTreeProgram } from './tree-program.ts';

/** Where Go finds the gateway: on the loopback interface of a network that has nothing else. */
const GATEWAY = 'http://127.0.0.1:3142/';
/** Where a module of this machine appears. */
const SOURCE = '/stage/source';

/**
 * A Go package as the person's module proxies say it is today. Go builds it into one static program; no code of a module
 * runs for that, and each is verified by the person's checksum database. Throws `runtime/package-not-found`,
 * `runtime/prefetch-failed`, `runtime/go-missing` or `runtime/aborted`.
 */
export async function findGoPackage(lookup: Lookup): Promise<FoundPackage> {
  const { environment, source, request } = lookup;
  if (source.directory !== undefined) return findLocal(lookup, source.directory);
  const asked = source.version === undefined ? source.name : `${source.name}@${source.version}`;
  request.report.step(`Looking up ${asked}`);
  const go = await findGo(environment);
  using unfinished = new DisposableStack();
  const proxies = unfinished.use(await GoProxies.open(environment, go.settings, await request.caCert?.()));
  const version = await proxies.resolve(source, request.signal);
  const specifier = `${source.name}@${version}`;
  const held = unfinished.move();
  return {
    reference: treeId('go', source.name, version),
    specifier,
    fetch: (fetch) => buildGo({ environment, specifier, target: specifier, go, proxies }, fetch),
    [Symbol.dispose]: () => held.dispose(),
  };
}

/** The same of a project of this machine, as it is now: other sources are another tree. */
async function findLocal({ environment, request }: Lookup, directory: string): Promise<FoundPackage> {
  const module = await findLocalModule(directory);
  const version = await localVersion(module, request.signal);
  const go = await findGo(environment);
  const proxies = await GoProxies.open(environment, go.settings, await request.caCert?.());
  const { target } = module;
  return {
    reference: treeId('go', directory, version),
    specifier: directory,
    fetch: async (fetch) => {
      const copy = path.join(fetch.stage, 'source');
      await mkdir(copy, { mode: 0o755 });
      if ((await localVersion(module, request.signal, copyTo(copy))) !== version) {
        throw notFetched(directory, 'its sources changed meanwhile');
      }
      const local = { root: module.root, copy };
      return await buildGo({ environment, specifier: directory, target, local, go, proxies }, fetch);
    },
    [Symbol.dispose]: () => proxies[Symbol.dispose](),
  };
}

interface GoBuild {
  readonly environment: RuntimeEnvironment;
  readonly specifier: string;
  /** What Go is told to build. */
  readonly target: string;
  /** The module that it is in, where that is none of the proxies: where it lies, and a copy for this build. */
  readonly local?: { readonly root: string; readonly copy: string };
  readonly go: GoToolchain;
  readonly proxies: GoProxies;
}

async function buildGo(build: GoBuild, fetch: Fetch): Promise<void> {
  const { environment, specifier, target, local, go, proxies } = build;
  const { bubblewrap, stage, report, signal } = fetch;
  const library = await compiledLibrary({ ...fetch, environment, go });
  report.step(`Building ${specifier}`);
  const tree = path.join(stage, 'tree');
  await Promise.all([mkdir(path.join(tree, 'bin')), mkdir(path.join(stage, 'tmp'))]);
  const cached = await linkLibrary(library, path.join(stage, 'build'));
  await using gateway = goGateway({ proxies, onDownload: (count) => report.detail(`${count} modules`) });
  const result = await installConfined({
    bubblewrap,
    gateway,
    stage,
    specifier,
    signal,
    manager: 'go',
    bridge: bridgeAroundScript(INSIDE.socket, Number(new URL(GATEWAY).port)),
    writable: ['tree/bin', 'tmp', 'build', ...cached.map((one) => `build/${one}`)],
    program: {
      command: [NODE, INSIDE.bridge, `${GO_ROOT}/bin/go`, 'install', ...GO_BUILD, '--', target],
      env: {
        ...GO_SETTINGS,
        GOPROXY: GATEWAY,
        GOSUMDB: go.settings.GOSUMDB,
        GONOSUMDB: go.settings.GONOSUMDB,
        GOBIN: `${APP}/bin`,
        GOPATH: `${INSIDE.cache}/path`,
      },
      mounts: [
        { source: await realpath(environment.execPath), target: NODE, readOnly: true },
        ...toolchainMounts(go),
        { source: path.join(tree, 'bin'), target: `${APP}/bin`, readOnly: false },
        { source: library, target: GO_LIBRARY, readOnly: true },
        { source: path.join(stage, 'build'), target: '/stage/build', readOnly: false },
        { source: path.join(stage, 'tmp'), target: '/stage/tmp', readOnly: false },
        ...(local === undefined ? [] : [{ source: local.copy, target: SOURCE, readOnly: true }]),
      ],
      cwd: local === undefined ? '/stage/tmp' : SOURCE,
    },
    onLine: countPackages((count) => report.detail(`${count} packages compiled`)),
  });
  if (result.status !== 0) {
    const said = result.said.replaceAll(SOURCE, local?.root ?? SOURCE);
    throw failureOf(said, gateway) ?? goFailure(specifier, said, GATEWAY);
  }
  await checkFiles({ tree, specifier });
  await writeTreeProgram(tree, { command: [await programOf(tree, specifier)], env: {}, needs: [] });
}

/** Go also asks for what may be no module, so a failure of the gateway counts only where Go ended for one. */
function failureOf(said: string, { failure }: PackageGateway): SkepError | undefined {
  return /502 Bad Gateway|unexpected EOF/.test(said) ? failure : undefined;
}

/** The one program that was built, as the sandbox sees it. */
async function programOf(tree: string, specifier: string): Promise<string> {
  const [name, ...others] = await readdir(path.join(tree, 'bin'));
  const isFile = name !== undefined && (await lstat(path.join(tree, 'bin', name))).isFile();
  if (name === undefined || !isFile || others.length > 0) {
    throw notFetched(specifier, 'it is no program (package main)');
  }
  return path.posix.join(APP, 'bin', name);
}

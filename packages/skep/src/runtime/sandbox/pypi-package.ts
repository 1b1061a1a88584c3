import { lstat, mkdir, realpath, rm, symlink, writeFile } from 'node:fs/promises';
import path from 'node:path';
import type { RuntimeEnvironment } from '../environment.ts';
import { bridgeAroundScript } from '../gateway/bridge.ts';
import { notFetched } from '../gateway/failure.ts';
import { pipFailure } from '../pypi/failure.ts';
import { pythonGateway } from '../pypi/gateway.ts';
import { PythonIndexes, type Project } from '../pypi/indexes.ts';
import { findPython, type Python } from '../pypi/python.ts';
import { checkPythonOrigins, serverScript } from '../pypi/script.ts';
import { checkFiles } from './check-tree.ts';
import { INSIDE, installConfined } from './confined-install.ts';
import { APP, NODE, pypiTreeId } from './package-trees.ts';
import { writeTreeProgram } from './tree-program.ts';
import type { Fetch, FoundPackage, Lookup } from './found-package.ts';

/** Where pip finds the gateway: on the loopback interface of a network that has nothing else. */
const GATEWAY = 'http://127.0.0.1:3141/';
/** Where the package pip appears inside, alone: what lies beside it on the machine must not count as installed. */
const PIP = '/skep/pip/pip';
const PYTHON = `${APP}/bin/python`;

/**
 * A package of the Python index as the person's indexes say it is today. pip installs it into a virtual environment of
 * its own; wheels are preferred, and what has none is built there too, where its code reaches nothing. Throws
 * `runtime/package-not-found`, `runtime/prefetch-failed`, `runtime/python-missing` or `runtime/aborted`.
 */
export async function findPypiPackage({ environment, source, request }: Lookup): Promise<FoundPackage> {
  const asked = source.version === undefined ? source.name : `${source.name}@${source.version}`;
  request.report.step(`Looking up ${asked}`);
  const python = await findPython(environment);
  using unfinished = new DisposableStack();
  const indexes = unfinished.use(await PythonIndexes.open(environment, python, await request.caCert?.()));
  const { version, project } = await indexes.resolve(source, python, request.signal);
  const specifier = `${source.name}@${version}`;
  const held = unfinished.move();
  const found = { environment, name: source.name, version, specifier, python, indexes, project };
  return {
    reference: pypiTreeId(source.name, version, python),
    specifier,
    fetch: (fetch) => fetchPypi(found, fetch),
    [Symbol.dispose]: () => held.dispose(),
  };
}

interface Found {
  readonly environment: RuntimeEnvironment;
  readonly name: string;
  readonly version: string;
  readonly specifier: string;
  readonly python: Python;
  readonly indexes: PythonIndexes;
  readonly project: Project;
}

async function fetchPypi(found: Found, { bubblewrap, stage, report, signal }: Fetch): Promise<void> {
  const { environment, name, version, specifier, python, indexes, project } = found;
  const tree = path.join(stage, 'tree');
  const packages = `lib/python${python.release}/site-packages`;
  await mkdir(path.join(tree, packages), { recursive: true });
  await mkdir(path.join(tree, 'bin'));
  await mkdir(path.join(stage, 'tmp'));
  await enterPython(tree, python);
  await using gateway = pythonGateway({
    indexes,
    known: project,
    onDownload: (count) => report.detail(`${count} downloads`),
  });
  const { port } = new URL(GATEWAY);
  const result = await installConfined({
    bubblewrap,
    gateway,
    stage,
    specifier,
    signal,
    manager: 'pip',
    bridge: bridgeAroundScript(INSIDE.socket, Number(port)),
    writable: ['tree', 'tree/bin', 'tree/lib', `tree/lib/python${python.release}`, `tree/${packages}`, 'tmp'],
    program: {
      command: [NODE, INSIDE.bridge, PYTHON, PIP, ...SETTINGS, '--', `${name}==${version}`],
      env: { TMPDIR: '/stage/tmp' },
      mounts: [
        { source: await realpath(environment.execPath), target: NODE, readOnly: true },
        { source: python.pip, target: PIP, readOnly: true },
        { source: tree, target: APP, readOnly: false },
        { source: path.join(stage, 'tmp'), target: '/stage/tmp', readOnly: false },
        ...python.needs.map((file) => ({ source: file, target: file, readOnly: true })),
      ],
      cwd: '/stage/tmp',
    },
    stdout: 'pipe',
    onLine: (line) => {
      if (line.startsWith('Installing collected packages')) report.detail('installing and compiling');
    },
  });
  if (result.status !== 0) throw gateway.failure ?? pipFailure(specifier, result.said);
  await finish({ tree, packages, name, specifier }, python);
}

type Filled = Parameters<typeof serverScript>[0];

/** What pip ran could write to all of it, and may have made links of it. */
async function finish(filled: Filled, python: Python): Promise<void> {
  const { tree, specifier } = filled;
  if (!(await lstat(path.join(tree, 'bin'))).isDirectory())
    throw notFetched(specifier, '"bin" is no directory');
  await leavePython(tree);
  await checkFiles({ tree, specifier });
  await checkPythonOrigins(filled);
  const { script, isPython } = await serverScript(filled);
  await enterPython(tree, python);
  await writeTreeProgram(tree, {
    command: [...(isPython ? [PYTHON] : []), path.posix.join(APP, script)],
    env: { PYTHONDONTWRITEBYTECODE: '1', PYTHONUNBUFFERED: '1' },
    needs: [...new Set([python.program, ...python.needs])],
  });
}

/** Makes a tree a virtual environment of that Python (PEP 405). */
async function enterPython(tree: string, { program, version }: Python): Promise<void> {
  const config = `home = ${path.dirname(program)}\ninclude-system-site-packages = false\nversion = ${version}\n`;
  await writeFile(path.join(tree, 'pyvenv.cfg'), config, { flag: 'wx', mode: 0o644 });
  await symlink(program, path.join(tree, 'bin/python'));
  // Where systems keep libraries of another word size apart, pip would.
  await symlink('lib', path.join(tree, 'lib64'));
}

async function leavePython(tree: string): Promise<void> {
  for (const name of ['pyvenv.cfg', 'bin/python', 'lib64']) {
    await rm(path.join(tree, name), { recursive: true, force: true });
  }
}

/** A package that does not exist must be known in seconds; nothing of a user is read. */
const SETTINGS = [
  '--isolated',
  'install',
  '--index-url',
  `${GATEWAY}simple/`,
  '--prefer-binary',
  '--no-input',
  '--no-cache-dir',
  '--disable-pip-version-check',
  '--no-warn-script-location',
  '--progress-bar',
  'off',
  '--retries',
  '1',
];

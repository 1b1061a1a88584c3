import { execFile, spawn } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import http from 'node:http';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { promisify } from 'node:util';
import { withLock } from '@skep/core/files/lock.ts';
import { DEBIAN_PYTHON, engineSocket } from './require.ts';

const run = promisify(execFile);

/**
 * Base images made from what this machine has, so that no image registry is needed. Each carries the label
 * `skep.fixture=<hash of its inputs>`; unchanged inputs cost one request.
 */

/** Never the name of a public image: what tests make must not stand in for it on somebody's machine. */
export const NODE_BASE = 'skep-test/node:24';
export const PYTHON_BASE = 'skep-test/python:3';
export const GO_BASE = 'skep-test/go:1';
export const TINY_IMAGE = 'skep-test/tiny:1';
const ESCAPE_IMAGE = 'skep-test/escape:1';

const BUSYBOX = '/bin/busybox';
const APPLETS =
  'sh cat ls mkdir rm cp mv ln chmod echo printf grep sed awk sleep true false id env test head tail tr';

/** Node, npm and a shell, without any certificate of this machine; by a name of the caller's own, if it wants one. */
export async function ensureNodeBase(tag: string = NODE_BASE): Promise<string> {
  if (tag !== NODE_BASE) {
    const [repo = '', version = ''] = tag.split(':');
    const name = new URLSearchParams({ repo, tag: version }).toString();
    await engine('POST', `/images/${await ensureNodeBase()}/tag?${name}`);
    return tag;
  }
  const node = realpathSync(process.execPath);
  const npm = path.resolve(path.dirname(realpathSync(await which('npm'))), '..');
  const hash = digest('node-base-2', node, readFileSync(path.join(npm, 'package.json'), 'utf8'));
  await ensureImport(tag, hash, ['ENV PATH=/usr/local/bin:/usr/bin:/bin', 'CMD ["node"]'], async (root) => {
    busybox(root);
    for (const library of [...(await libraries(node)), ...(await systemLibraries(NAME_SERVICE))])
      copyInto(root, library, library);
    copyInto(root, node, '/usr/local/bin/node');
    cpSync(npm, path.join(root, 'usr/local/lib/node_modules/npm'), { recursive: true, dereference: false });
    symlinkSync('../lib/node_modules/npm/bin/npm-cli.js', path.join(root, 'usr/local/bin/npm'));
    writeFileSync(path.join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  });
  return tag;
}

/** Python of this Debian machine with pip, and a shell, without any certificate of this machine. */
export async function ensurePythonBase(tag: string = PYTHON_BASE): Promise<string> {
  const asked =
    'import os, pip, sysconfig; print(sysconfig.get_path("stdlib"), os.path.dirname(pip.__file__))';
  const { stdout } = await run(DEBIAN_PYTHON, ['-c', asked]);
  const [stdlib = '', pip = ''] = stdout.trim().split(' ');
  const python = realpathSync(DEBIAN_PYTHON);
  const changes = ['ENV PATH=/usr/local/bin:/usr/bin:/bin', 'CMD ["python3"]'];
  await ensureImport(tag, digest('python-base-3', python, stdlib, pip), changes, async (root) => {
    busybox(root);
    // The marker of Debian that keeps pip from installing anything is for machines, not for images.
    const wanted = (file: string): boolean => !/\/(?:__pycache__|test|EXTERNALLY-MANAGED)$/.test(file);
    for (const tree of [stdlib, pip])
      cpSync(tree, path.join(root, tree), { recursive: true, filter: wanted });
    const extensions = readdirSync(path.join(stdlib, 'lib-dynload')).map((one) =>
      path.join(stdlib, 'lib-dynload', one),
    );
    const needed = (await Promise.all([python, ...extensions].map(libraries))).flat();
    const named = await systemLibraries([...NAME_SERVICE, ...MANYLINUX]);
    for (const library of [...needed, ...named]) copyInto(root, library, library);
    copyInto(root, python, python);
    for (const name of ['python3', 'python']) symlinkSync(python, path.join(root, 'usr/bin', name));
    writeFileSync(path.join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n');
  });
  return tag;
}

/** The Go of this machine, and a shell, without any certificate of this machine. */
export async function ensureGoBase(): Promise<string> {
  const { stdout } = await run('go', ['env', 'GOROOT', 'GOVERSION'], {
    cwd: '/',
    env: { ...process.env, GOTOOLCHAIN: 'local' },
  });
  const [root = '', version = ''] = stdout.trim().split('\n');
  const changes = ['ENV PATH=/usr/local/go/bin:/usr/bin:/bin', 'CMD ["sh"]'];
  await ensureImport(GO_BASE, digest('go-base-1', version), changes, (made) => {
    busybox(made);
    const parts = ['VERSION', 'go.env', 'src', 'lib', 'bin', 'pkg'];
    // Tests and their data are half of it.
    const filter = (file: string): boolean => !/\/testdata$|_test\.go$/.test(file);
    for (const part of parts.filter((one) => existsSync(path.join(root, one))))
      cpSync(path.join(root, part), path.join(made, 'usr/local/go', part), { recursive: true, filter });
  });
  return GO_BASE;
}

/**
 * A stdio server given as one Node script, on the Node base: `/server.mjs` is its entry point, unless further lines of a
 * Dockerfile say otherwise.
 */
export async function ensureScriptImage(
  tag: string,
  script: string,
  more: readonly string[] = [],
): Promise<string> {
  const base = await ensureNodeBase();
  const hash = digest(script, ...more, await imageId(base));
  const lines = [`FROM ${base}`, `LABEL skep.fixture=${hash}`, ...SCRIPT_LINES, ...more];
  const fill = (context: string): void => writeFileSync(path.join(context, 'server.mjs'), script);
  await makeOnce(tag, hash, () => buildImage(tag, lines, fill));
  return tag;
}

const SCRIPT_LINES = ['COPY server.mjs /server.mjs', 'ENTRYPOINT ["node", "/server.mjs"]'];

/** By the engine, from lines of a Dockerfile and what `fill` puts beside them. */
export async function buildImage(
  tag: string,
  lines: readonly string[],
  fill: (context: string) => void | Promise<void> = () => {},
): Promise<void> {
  const context = mkdtempSync(path.join(tmpdir(), 'skep-image-'));
  try {
    await fill(context);
    writeFileSync(path.join(context, 'Dockerfile'), `${lines.join('\n')}\n`);
    const query = new URLSearchParams({ t: tag, rm: '1', forcerm: '1', version: '1' });
    await sendTar(`/build?${query.toString()}`, context);
  } finally {
    rmSync(context, { recursive: true, force: true });
  }
}

/** A server in JavaScript, and a perl for what only system calls can do. */
export async function ensureEscapeImage(script: string): Promise<string> {
  const base = await ensureNodeBase();
  const perl = realpathSync('/usr/bin/perl');
  const hash = digest('escape-1', script, perl, await imageId(base));
  const lines = [`FROM ${base}`, `LABEL skep.fixture=${hash}`, 'COPY root /', ...SCRIPT_LINES];
  await makeOnce(ESCAPE_IMAGE, hash, () =>
    buildImage(ESCAPE_IMAGE, lines, async (context) => {
      for (const one of [perl, ...(await libraries(perl))]) copyInto(context, one, path.join('root', one));
      writeFileSync(path.join(context, 'server.mjs'), script);
    }),
  );
  return ESCAPE_IMAGE;
}

/** A 2 MB image whose entry point is a shell script that answers MCP over stdio. */
export async function ensureTinyImage(script: string): Promise<string> {
  const hash = digest('tiny-1', script);
  await ensureImport(TINY_IMAGE, hash, ['ENTRYPOINT ["/server.sh"]'], (root) => {
    busybox(root);
    writeFileSync(path.join(root, 'server.sh'), script, { mode: 0o755 });
  });
  return TINY_IMAGE;
}

function busybox(root: string): void {
  for (const directory of [
    'bin',
    'etc/ssl/certs',
    'tmp',
    'root',
    'proc',
    'sys',
    'dev',
    'usr/bin',
    'usr/local/bin',
    'usr/local/lib/node_modules',
  ]) {
    mkdirSync(path.join(root, directory), { recursive: true, mode: directory === 'tmp' ? 0o1777 : 0o755 });
  }
  copyInto(root, BUSYBOX, '/bin/busybox');
  for (const applet of APPLETS.split(' ')) symlinkSync('busybox', path.join(root, 'bin', applet));
  symlinkSync('/bin/busybox', path.join(root, 'usr/bin/env'));
  writeFileSync(
    path.join(root, 'etc/passwd'),
    'root:x:0:0:root:/root:/bin/sh\nnode:x:1000:1000::/tmp:/bin/sh\n',
  );
  writeFileSync(path.join(root, 'etc/group'), 'root:x:0:\nnode:x:1000:\n');
}

function copyInto(root: string, from: string, to: string): void {
  const target = path.join(root, to);
  mkdirSync(path.dirname(target), { recursive: true });
  cpSync(realpathSync(from), target);
}

async function libraries(binary: string): Promise<string[]> {
  const { stdout } = await run('ldd', [binary]);
  return [...stdout.matchAll(/(\/[^ )]+) \(0x/g)].flatMap((match) => match[1] ?? []);
}

/** glibc loads these by name when it resolves a host. */
const NAME_SERVICE = ['libnss_dns.so.2', 'libnss_files.so.2', 'libresolv.so.2'];
/** Compiled Python packages, uv among them, may expect these of any Linux ("manylinux"). */
const MANYLINUX = [
  'libgcc_s.so.1',
  'librt.so.1',
  'libdl.so.2',
  'libpthread.so.0',
  'libm.so.6',
  'libstdc++.so.6',
];

/** Where the dynamic linker finds libraries of these names. */
async function systemLibraries(names: readonly string[]): Promise<string[]> {
  const { stdout } = await run('ldconfig', ['-p'], { env: { PATH: '/sbin:/usr/sbin:/bin:/usr/bin' } });
  return names.flatMap(
    (name) => new RegExp(`${name.replaceAll(/[.+]/g, String.raw`\$&`)} .*=> (/\\S+)`).exec(stdout)?.[1] ?? [],
  );
}

async function which(program: string): Promise<string> {
  return (await run('sh', ['-c', `command -v ${program}`])).stdout.trim();
}

const digest = (...inputs: string[]) =>
  createHash('sha256').update(inputs.join('\0')).digest('hex').slice(0, 16);

/** Files of tests run at once, and one of them makes what several need. */
async function makeOnce(tag: string, hash: string, make: () => Promise<void>): Promise<void> {
  const lock = path.join(tmpdir(), 'skep-e2e-images.lock');
  await withLock(lock, { waitMs: 120_000, what: 'the fixture images' }, async () => {
    if ((await fixtureHash(tag)) !== hash) await make();
  });
}

function ensureImport(
  tag: string,
  hash: string,
  changes: readonly string[],
  fill: (root: string) => Promise<void> | void,
): Promise<void> {
  return makeOnce(tag, hash, () => importImage(tag, hash, changes, fill));
}

async function importImage(
  tag: string,
  hash: string,
  changes: readonly string[],
  fill: (root: string) => Promise<void> | void,
): Promise<void> {
  const root = mkdtempSync(path.join(tmpdir(), 'skep-image-'));
  try {
    await fill(root);
    const [repo = '', version = ''] = tag.split(':');
    const query = new URLSearchParams({ fromSrc: '-', repo, tag: version });
    for (const change of [...changes, `LABEL skep.fixture=${hash}`]) query.append('changes', change);
    await sendTar(`/images/create?${query.toString()}`, root);
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

async function fixtureHash(tag: string): Promise<string | undefined> {
  const answer = await engine('GET', `/images/${tag}/json`);
  if (answer.status === 404) return undefined;
  const image = JSON.parse(answer.text) as { Config: { Labels?: Record<string, string> | null } };
  return image.Config.Labels?.['skep.fixture'];
}

async function imageId(tag: string): Promise<string> {
  return (JSON.parse((await engine('GET', `/images/${tag}/json`)).text) as { Id: string }).Id;
}

/** One request to the engine, for tests that look behind the product's back. A stream is a tar, an object is JSON. */
export function engine(
  method: string,
  url: string,
  body?: NodeJS.ReadableStream | object,
): Promise<{ status: number; text: string }> {
  const tar = body !== undefined && 'pipe' in body ? body : undefined;
  return new Promise((resolve, reject) => {
    const headers = body ? { 'content-type': tar ? 'application/x-tar' : 'application/json' } : {};
    const request = http.request({ socketPath: engineSocket(), method, path: url, headers }, (response) => {
      const chunks: Buffer[] = [];
      response.on('data', (chunk: Buffer) => chunks.push(chunk));
      response.on('error', reject);
      response.on('end', () =>
        resolve({ status: response.statusCode ?? 0, text: Buffer.concat(chunks).toString() }),
      );
    });
    request.on('error', reject);
    if (tar) tar.pipe(request);
    else request.end(body === undefined ? undefined : JSON.stringify(body));
  });
}

async function sendTar(url: string, directory: string): Promise<void> {
  const tar = spawn('tar', ['-C', directory, '--owner=0', '--group=0', '--numeric-owner', '-c', '.'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const answer = await engine('POST', url, tar.stdout);
  if (answer.status !== 200 || /"error(?:Detail)?"/.test(answer.text)) {
    throw new Error(`the engine did not make the image: ${answer.text.slice(-500)}`);
  }
}

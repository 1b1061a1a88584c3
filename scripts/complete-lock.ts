import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';

/**
 * Adds to package-lock.json what npm leaves out when the package registry it asked does not carry the builds for other
 * platforms: their optional packages, and the hash of each that the registry does know. Without the packages newer
 * versions of `npm ci` refuse the lock; without the hash npm takes whatever a registry serves under that version.
 * `--check` only looks, and fails for either. Where the registry lacks a build, take a version of the tool that it has whole.
 */
interface Entry {
  readonly version?: string;
  readonly integrity?: string;
  readonly link?: boolean;
  readonly optional?: boolean;
  readonly dev?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Added = {
  version: string;
  integrity?: string;
  cpu?: string[];
  dev?: boolean;
  optional: true;
  os?: string[];
};

/** How many questions to the package registry are open at once. */
const LANES = 4;
const run = promisify(execFile);

const file = path.resolve(import.meta.dirname, '../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry | Added> };
const missing = Object.entries(lock.packages).flatMap(([where, entry]) => missingOf(where, entry));

if (process.argv.includes('--check')) check();
else await complete();

function check(): void {
  for (const { where } of missing)
    console.error(`package-lock.json: ${where} is missing; run node scripts/complete-lock.ts`);
  const bare = withoutHash();
  for (const [where] of bare)
    console.error(`package-lock.json: ${where} has no hash; run node scripts/complete-lock.ts`);
  process.exitCode = missing.length + bare.length > 0 ? 1 : 0;
}

async function complete(): Promise<void> {
  for (const { where, added } of missing) lock.packages[where] = added;
  const bare = withoutHash();
  const queue = [...bare];
  const found = new Map<string, string>();
  async function work(): Promise<void> {
    for (let next = queue.pop(); next; next = queue.pop()) {
      const [where, { version }] = next;
      const integrity = await hashOf(nameOf(where), version ?? '');
      if (integrity !== undefined) found.set(where, integrity);
    }
  }
  await Promise.all(Array.from({ length: LANES }, work));
  for (const [where, entry] of bare) {
    const integrity = found.get(where);
    if (integrity === undefined) continue;
    const { version, ...rest } = entry;
    lock.packages[where] = { ...(version === undefined ? {} : { version }), integrity, ...rest };
  }
  const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  if (missing.length + found.size > 0)
    writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
  console.log(`package-lock.json: added ${missing.length} packages of other platforms, ${found.size} hashes`);
  if (bare.length > found.size)
    console.log(`the package registry does not carry ${bare.length - found.size} of the builds`);
}

/** Everything that npm would fetch and could not compare with the lock. */
function withoutHash(): [string, Entry][] {
  return Object.entries(lock.packages).filter(
    ([where, entry]: [string, Entry]) =>
      where.includes('node_modules/') && !entry.link && entry.integrity === undefined,
  );
}

/** Undefined when the configured registry does not have that version. */
async function hashOf(name: string, version: string): Promise<string | undefined> {
  try {
    const { stdout } = await run('npm', ['view', '--json', '--', `${name}@${version}`, 'dist.integrity']);
    return stdout.trim() === '' ? undefined : (JSON.parse(stdout) as string);
  } catch (error) {
    if (error instanceof Error && 'stdout' in error && String(error.stdout).includes('"E404"'))
      return undefined;
    throw error;
  }
}

function nameOf(where: string): string {
  return where.slice(where.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

function missingOf(where: string, entry: Entry): { where: string; added: Added }[] {
  const optional = 'optionalDependencies' in entry ? (entry.optionalDependencies ?? {}) : {};
  return Object.entries(optional).flatMap(([name, version]) => {
    // A range would need the registry's answer; the packages in question pin their builds.
    if (!/^\d+\.\d+\.\d+/.test(version) || isLocked(where, name, version)) return [];
    const top = `node_modules/${name}`;
    const taken = lock.packages[top] !== undefined && lock.packages[top].version !== version;
    const added = {
      version,
      ...platformOf(name),
      ...(entry.dev ? { dev: true } : {}),
      optional: true as const,
    };
    return [{ where: taken ? `${where}/${top}` : top, added }];
  });
}

/** Looks where Node would: beside the package, then in every folder above it; the first one found counts. */
function isLocked(where: string, name: string, version: string): boolean {
  const folders = where
    .split('/node_modules/')
    .map((_, at, all) => all.slice(0, all.length - at).join('/node_modules/'));
  for (const folder of [...folders, '']) {
    const found = lock.packages[folder === '' ? `node_modules/${name}` : `${folder}/node_modules/${name}`];
    if (found !== undefined) return found.version === version;
  }
  return false;
}

/** npm skips a package by these members; the names of platform builds carry them. */
function platformOf(name: string): Pick<Added, 'os' | 'cpu'> {
  const words = name.split(/[/-]/);
  const os = [
    'aix',
    'android',
    'darwin',
    'freebsd',
    'linux',
    'netbsd',
    'openbsd',
    'openharmony',
    'sunos',
    'win32',
  ];
  const cpu = ['arm', 'arm64', 'ia32', 'loong64', 'mips64el', 'ppc64', 'riscv64', 's390x', 'wasm32', 'x64'];
  const found = { os: os.find((one) => words.includes(one)), cpu: cpu.find((one) => words.includes(one)) };
  return { ...(found.cpu ? { cpu: [found.cpu] } : {}), ...(found.os ? { os: [found.os] } : {}) };
}

import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

/**
 * Adds to package-lock.json what npm leaves out when the package registry it asked does not carry the builds for other
 * platforms: their optional packages. Without them newer versions of `npm ci` refuse the lock. `--check` only looks.
 */
interface Entry {
  readonly version?: string;
  readonly dev?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

type Added = { version: string; cpu?: string[]; dev?: boolean; optional: true; os?: string[] };

const file = path.resolve(import.meta.dirname, '../package-lock.json');
const lock = JSON.parse(readFileSync(file, 'utf8')) as { packages: Record<string, Entry | Added> };
const missing = Object.entries(lock.packages).flatMap(([where, entry]) => missingOf(where, entry));

if (process.argv.includes('--check')) {
  for (const { where } of missing)
    console.error(`package-lock.json: ${where} is missing; run node scripts/complete-lock.ts`);
  process.exitCode = missing.length > 0 ? 1 : 0;
} else if (missing.length > 0) {
  for (const { where, added } of missing) lock.packages[where] = added;
  const sorted = Object.entries(lock.packages).toSorted(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  writeFileSync(file, `${JSON.stringify({ ...lock, packages: Object.fromEntries(sorted) }, null, 2)}\n`);
  console.log(`package-lock.json: added ${missing.length} packages of other platforms`);
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

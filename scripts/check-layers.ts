import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parseSync } from 'oxc-parser';
import { checkFolders, isForTests, type FolderRules } from './folder-order.ts';

/**
 * Enforces layers.json: which package may import which, that a package declares what it imports, that relative imports
 * stay inside their package, that folders inside a package import downwards, and that a folder of core is used by at
 * least two other packages.
 */
interface Layers {
  readonly packages: Readonly<Record<string, readonly string[]>>;
  readonly forbidden: readonly { readonly from: string; readonly to: string; readonly why: string }[];
  readonly folders: Readonly<Record<string, FolderRules>>;
  readonly coreAdmission: { readonly why: string; readonly pending: Readonly<Record<string, string>> };
}

const root = path.resolve(import.meta.dirname, '..');
const layers: Layers = JSON.parse(readFileSync(path.join(root, 'layers.json'), 'utf8'));
const problems: string[] = [];
const usersOfCore = new Map<string, Set<string>>();
const chains: string[] = [];

for (const owner of Object.keys(layers.packages)) {
  const imports = importsOfPackage(owner);
  checkPackage(owner, imports);
  checkFolderOrder(owner, imports);
}
checkAdmission();

if (problems.length > 0) {
  console.error(problems.join('\n'));
  process.exit(1);
}
console.log([`layers hold in ${Object.keys(layers.packages).length} packages`, ...chains].join('\n'));

/** Every source file of a package to what it imports, as written. */
function importsOfPackage(owner: string): ReadonlyMap<string, readonly string[]> {
  const files = globSync(`packages/${owner}/src/**/*.ts`, { cwd: root });
  return new Map(files.map((file) => [file, importsOf(file)]));
}

function checkPackage(owner: string, imports: ReadonlyMap<string, readonly string[]>): void {
  const manifest: { dependencies?: Record<string, string>; optionalDependencies?: Record<string, string> } =
    JSON.parse(readFileSync(path.join(root, 'packages', owner, 'package.json'), 'utf8'));
  const declared = new Set(Object.keys({ ...manifest.dependencies, ...manifest.optionalDependencies }));
  for (const [file, specifiers] of imports) {
    for (const specifier of specifiers) checkImport({ owner, file, specifier, declared });
  }
}

function checkFolderOrder(owner: string, imports: ReadonlyMap<string, readonly string[]>): void {
  const rules = layers.folders[owner];
  if (!rules) return;
  const source = `packages/${owner}/src`;
  const inside = [...imports]
    .filter(([file]) => !isForTests(file))
    .map(([file, specifiers]) => {
      const targets = specifiers
        .filter((specifier) => specifier.startsWith('.'))
        .map((specifier) => path.relative(source, path.join(path.dirname(file), specifier)));
      return [path.relative(source, file), targets] as const;
    });
  const { problems: found, chain } = checkFolders(new Map(inside), rules);
  problems.push(...found.map((problem) => `${source}: ${problem}`));
  if (rules.chain) {
    chains.push(`${owner}: ${chain.length} folders (at most ${rules.chain.ceiling}): ${chain.join(' → ')}`);
  }
}

interface Import {
  readonly owner: string;
  readonly file: string;
  readonly specifier: string;
  readonly declared: ReadonlySet<string>;
}

function checkImport({ owner, file, specifier, declared }: Import): void {
  if (specifier.startsWith('node:')) return;
  if (specifier.startsWith('.')) {
    const target = path.join(path.dirname(file), specifier);
    if (!target.startsWith(`packages/${owner}/`)) problems.push(`${file}: "${specifier}" leaves its package`);
    return;
  }
  const name = packageName(specifier);
  if (name.startsWith('@skep/')) checkEdge(owner, file, specifier);
  if (!declared.has(name) && !isForTests(file)) {
    problems.push(`${file}: "${name}" is not in packages/${owner}/package.json`);
  }
}

function checkEdge(owner: string, file: string, specifier: string): void {
  const [, to = '', folder = ''] = specifier.split('/');
  if (to === 'core') {
    const users = usersOfCore.get(folder) ?? new Set();
    usersOfCore.set(folder, users.add(owner));
  }
  if (layers.packages[owner]?.includes(to)) return;
  const rule = layers.forbidden.find((one) => one.from === owner && (one.to === to || one.to === '*'));
  problems.push(`${file}: ${owner} must not import ${to}${rule ? `: ${rule.why}` : ' (layers.json)'}`);
}

function checkAdmission(): void {
  const folders = globSync('packages/core/src/*/', { cwd: root }).map((folder) => path.basename(folder));
  for (const folder of folders) {
    const users = usersOfCore.get(folder)?.size ?? 0;
    const pending = layers.coreAdmission.pending[folder];
    if (users < 2 && pending === undefined) {
      problems.push(
        `packages/core/src/${folder}: imported by ${users} packages; ${layers.coreAdmission.why}`,
      );
    }
    if (users >= 2 && pending !== undefined) {
      problems.push(`layers.json: core/${folder} is in use now, take it out of coreAdmission.pending`);
    }
  }
}

function importsOf(file: string): readonly string[] {
  const text = readFileSync(path.join(root, file), 'utf8');
  const { module } = parseSync(file, text);
  const literal = (start: number, end: number): string =>
    text.slice(start, end).replace(/^['"`]|['"`]$/g, '');
  return [
    ...module.staticImports.map((one) => one.moduleRequest.value),
    ...module.staticExports.flatMap((one) =>
      one.entries.flatMap((entry) => entry.moduleRequest?.value ?? []),
    ),
    ...module.dynamicImports
      .map((one) => literal(one.moduleRequest.start, one.moduleRequest.end))
      .filter((specifier) => /^[@.\w/:-]+$/.test(specifier)),
  ];
}

function packageName(specifier: string): string {
  const [first = '', second = ''] = specifier.split('/');
  return specifier.startsWith('@') ? `${first}/${second}` : first;
}

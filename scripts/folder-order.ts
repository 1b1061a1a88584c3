/**
 * The order of the folders inside one package: a file imports from its own folder and from folders listed after it,
 * no files import each other in a circle (types included), and no two folders under one parent import each other.
 */
export interface FolderRules {
  /** Folder to the reason why nothing after it may import it, from the entry (`.`, the package's root) downwards. */
  readonly order: Readonly<Record<string, string>>;
  /** The longest way from the entry to this folder may lead through this many folders, both ends included. */
  readonly chain?: { readonly to: string; readonly ceiling: number };
}

/** File to the files of the same package that it imports, both relative to the package's `src`. */
export type ImportsOfFiles = ReadonlyMap<string, readonly string[]>;

/** What is wrong with the folders of one package, and the longest chain of folders that its rules measure. */
export function checkFolders(
  imports: ImportsOfFiles,
  rules: FolderRules,
): { readonly problems: readonly string[]; readonly chain: readonly string[] } {
  const edges = folderEdges(imports);
  const chain = rules.chain ? longestChain(edges, Object.keys(rules.order), rules.chain.to) : [];
  const problems = [
    ...unlistedFolders(imports, rules),
    ...upwardImports(edges, rules),
    ...mutualFolders(imports),
    ...importCircles(imports),
  ];
  const ceiling = rules.chain?.ceiling ?? 0;
  if (chain.length > ceiling) {
    problems.push(`${chain.length} folders to ${rules.chain?.to}, at most ${ceiling}: ${chain.join(' → ')}`);
  }
  return { problems, chain };
}

/** Whether a file only serves tests: tests, fixtures, contracts and doubles may import what they like. */
export function isForTests(file: string): boolean {
  return /\.(?:test|fixture)\.ts$|\/(?:contract(?:\.ts$|\/)|doubles\/)/.test(file);
}

const folderOf = (file: string): string => (file.includes('/') ? file.slice(0, file.indexOf('/')) : '.');

/** `from` to `to` to the imports between them, each as `file imports file`. */
type Edges = ReadonlyMap<string, ReadonlyMap<string, readonly string[]>>;

function folderEdges(imports: ImportsOfFiles): Edges {
  const edges = new Map<string, Map<string, string[]>>();
  for (const [file, targets] of imports) {
    for (const target of targets) {
      const [from, to] = [folderOf(file), folderOf(target)];
      if (from === to) continue;
      const tos = edges.get(from) ?? new Map<string, string[]>();
      edges.set(from, tos.set(to, [...(tos.get(to) ?? []), `${file} imports ${target}`]));
    }
  }
  return edges;
}

function unlistedFolders(imports: ImportsOfFiles, { order }: FolderRules): readonly string[] {
  const folders = new Set([...imports.keys()].map(folderOf));
  return [
    ...[...folders]
      .filter((folder) => order[folder] === undefined)
      .map((folder) => `the folder ${folder} has no place in the order of layers.json`),
    ...Object.keys(order)
      .filter((folder) => !folders.has(folder))
      .map((folder) => `layers.json lists the folder ${folder}, which holds no product file`),
  ];
}

function upwardImports(edges: Edges, { order }: FolderRules): readonly string[] {
  const rank = new Map(Object.keys(order).map((folder, index) => [folder, index]));
  const upward = (from: string, to: string): boolean => (rank.get(to) ?? Infinity) <= (rank.get(from) ?? -1);
  return [...edges].flatMap(([from, tos]) =>
    [...tos]
      .filter(([to]) => upward(from, to))
      .map(([to, found]) => `${from} must not import ${to} (${order[to]}): ${found.join(', ')}`),
  );
}

/** Folders under one parent folder that import each other. (At the top the order forbids it.) */
function mutualFolders(imports: ImportsOfFiles): readonly string[] {
  const pairs = new Set<string>();
  for (const [file, targets] of imports) {
    for (const target of targets) {
      const [from, to] = siblings(file, target);
      if (from !== undefined && to !== undefined) pairs.add(`${from} ${to}`);
    }
  }
  return [...pairs]
    .map((pair) => pair.split(' '))
    .filter(([from = '', to = '']) => from < to && pairs.has(`${to} ${from}`))
    .map(([from, to]) => `${from} and ${to} import each other`);
}

/** The folders in which the ways to two files part, if both part into a folder below the top. */
function siblings(file: string, target: string): readonly [string?, string?] {
  const [ways, others] = [file.split('/'), target.split('/')];
  let depth = 0;
  while (ways[depth] === others[depth] && depth < ways.length) depth += 1;
  if (depth === 0 || depth >= ways.length - 1 || depth >= others.length - 1) return [];
  return [ways.slice(0, depth + 1).join('/'), others.slice(0, depth + 1).join('/')];
}

function importCircles(imports: ImportsOfFiles): readonly string[] {
  return circlesOf(imports).map(
    (circle) => `these files import each other in a circle: ${circle.toSorted().join(', ')}`,
  );
}

/** Tarjan's strongly connected components with more than one member (SIAM Journal on Computing 1.2, 1972). */
function circlesOf(imports: ImportsOfFiles): readonly (readonly string[])[] {
  const numbers = new Map<string, number>();
  const lowest = new Map<string, number>();
  const open: string[] = [];
  const circles: string[][] = [];
  const visit = (file: string): void => {
    numbers.set(file, numbers.size);
    lowest.set(file, numbers.size - 1);
    open.push(file);
    for (const target of imports.get(file) ?? []) {
      if (!imports.has(target)) continue;
      if (!numbers.has(target)) visit(target);
      if (open.includes(target)) {
        lowest.set(file, Math.min(lowest.get(file) ?? 0, lowest.get(target) ?? 0));
      }
    }
    if (lowest.get(file) !== numbers.get(file)) return;
    const circle = open.splice(open.indexOf(file));
    if (circle.length > 1) circles.push(circle);
  };
  for (const file of imports.keys()) if (!numbers.has(file)) visit(file);
  return circles;
}

/** The longest way from the entry to a folder along imports that the order allows. */
function longestChain(edges: Edges, order: readonly string[], to: string): readonly string[] {
  const chains = new Map<string, readonly string[]>([['.', ['.']]]);
  for (const [index, folder] of order.entries()) {
    const chain = chains.get(folder);
    if (!chain) continue;
    for (const next of edges.get(folder)?.keys() ?? []) {
      if (order.indexOf(next) <= index || (chains.get(next)?.length ?? 0) > chain.length) continue;
      chains.set(next, [...chain, next]);
    }
  }
  return chains.get(to) ?? [];
}

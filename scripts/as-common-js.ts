import { parseAst } from 'rolldown/parseAst';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

type Statement = ReturnType<typeof parseAst>['body'][number];

/**
 * A chunk that imports and exports as CommonJS, for `cli/load-chunks.ts`. What it imports are constants of its own, which
 * V8 knows as such; rolldown's CommonJS asks an object of another chunk each time, by a function (`skep list --all` took a
 * tenth longer). So no chunk may import itself, and nothing that is exported may change once its chunk has run: that fails
 * here. Takes and gives JavaScript; a built-in module is its own default export.
 */
export function asCommonJs(code: string): string {
  const { body } = parseAst(code);
  const parts: string[] = [];
  let end = 0;
  const replace = (node: Node, text: string): void => {
    parts.push(code.slice(end, node.start), text);
    end = node.end;
  };
  const exported = new Set<string>();
  for (const node of body) {
    const text = commonJs(node, code, exported);
    if (text !== undefined) replace(node, text);
    else for (const [expression, instead] of standInsIn(node, code)) replace(expression, instead);
  }
  for (const name of laterAssigned(body))
    if (exported.has(name)) throw new Error(`"${name}" is exported, and something is assigned to it later`);
  return [...parts, code.slice(end)].join('');
}

/** What stands for an import or export; undefined for every other statement. */
function commonJs(node: Statement, code: string, exported: Set<string>): string | undefined {
  if (node.type === 'ImportDeclaration') {
    const from = `require(${code.slice(node.source.start, node.source.end)})`;
    const isBuiltin = !node.source.value.startsWith('.');
    const named: string[] = [];
    const whole: string[] = [];
    for (const one of node.specifiers) {
      const { name } = one.local;
      if (one.type === 'ImportSpecifier') named.push(`${nameOf(one.imported)}:${name}`);
      else if (one.type === 'ImportNamespaceSpecifier' || isBuiltin) whole.push(`${name}=${from}`);
      else named.push(`default:${name}`);
    }
    if (named.length > 0) whole.push(`{${named.join()}}=${from}`);
    return whole.length === 0 ? `${from};` : `const ${whole.join()};`;
  }
  if (node.type === 'ExportDefaultDeclaration') {
    if (node.declaration.type.endsWith('Declaration')) throw new Error('a declaration is the default export');
    return `exports.default=${code.slice(node.declaration.start, node.declaration.end)};`;
  }
  if (node.type === 'ExportNamedDeclaration') {
    if (node.declaration) throw new Error('an export declares what it exports');
    const from = node.source && `require(${code.slice(node.source.start, node.source.end)})`;
    if (from === null) for (const { local } of node.specifiers) exported.add(nameOf(local));
    const given = node.specifiers.map(
      ({ exported: to, local }) =>
        `exports.${nameOf(to)}=${from === null ? '' : `${from}.`}${nameOf(local)};`,
    );
    return given.join('');
  }
  if (node.type === 'ExportAllDeclaration') throw new Error('an export of everything');
  return undefined;
}

const nameOf = (id: { readonly name: string } | { readonly value: unknown }): string =>
  'name' in id ? id.name : String(id.value);

/** What only a module can say, in order, and what stands for it; `import()` of a package, or of what is not known here, stays. */
function standInsIn(node: unknown, code: string): readonly (readonly [Node, string])[] {
  const found: [Node, string][] = [];
  walk(node, (one) => {
    if (one.type === 'ImportExpression' && 'source' in one) {
      const { start, end } = one.source as Node;
      const id = code.slice(start, end);
      if (/^.(?:\.|node:)/.test(id)) found.push([one, `Promise.resolve().then(()=>require(${id}))`]);
    }
    const of = META.get(code.slice(one.start, one.end));
    if (of !== undefined) found.push([one, of]);
    return true;
  });
  return found.toSorted(([one], [other]) => one.start - other.start);
}

const META = new Map([
  ['import.meta.dirname', '__dirname'],
  ['import.meta.filename', '__filename'],
  ['import.meta.url', 'require("node:url").pathToFileURL(__filename).href'],
]);

const FUNCTION = /^(?:Function|ArrowFunction)/;
/** Where ESTree says what is assigned to. */
const TARGETS = new Set([
  'AssignmentExpression left',
  'UpdateExpression argument',
  'ForInStatement left',
  'ForOfStatement left',
]);

/** Names of the module that something in a function is assigned to. */
function laterAssigned(body: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (node: Node, hidden: ReadonlySet<string> | undefined): void => {
    const inside = FUNCTION.test(node.type) ? new Set([...(hidden ?? []), ...declaredIn(node)]) : hidden;
    for (const [key, child] of Object.entries(node)) {
      const names = inside && TARGETS.has(`${node.type} ${key}`) ? namesIn(child) : [];
      for (const name of names) if (inside?.has(name) !== true) found.add(name);
      walk(child, (one) => {
        visit(one, inside);
        return false;
      });
    }
  };
  walk(body, (node) => {
    visit(node, undefined);
    return false;
  });
  return found;
}

/** What a function declares, in whatever block of it. */
function declaredIn(fn: Node): readonly string[] {
  const found: string[] = [];
  walk(Object.values(fn), (node) => {
    if (/^(?:FunctionDeclaration|ClassDeclaration|VariableDeclarator)$/.test(node.type) && 'id' in node)
      found.push(...namesIn(node.id));
    if (node.type === 'CatchClause' && 'param' in node) found.push(...namesIn(node.param));
    return !FUNCTION.test(node.type);
  });
  if ('params' in fn) found.push(...namesIn(fn.params));
  if (fn.type === 'FunctionExpression' && 'id' in fn) found.push(...namesIn(fn.id));
  return found;
}

/** The names that a pattern binds or assigns to; those of members are none. */
function namesIn(pattern: unknown): readonly string[] {
  if (Array.isArray(pattern)) return pattern.flatMap(namesIn);
  const { type, name, left, argument, elements, properties, value } = (pattern ?? {}) as Pattern;
  if (type === 'Identifier') return name === undefined ? [] : [name];
  if (type === 'AssignmentPattern') return namesIn(left);
  if (type === 'RestElement') return namesIn(argument);
  if (type === 'ArrayPattern') return namesIn(elements);
  if (type === 'ObjectPattern') return namesIn(properties);
  return type === 'Property' ? namesIn(value) : [];
}

interface Pattern {
  readonly type?: string;
  readonly name?: string;
  readonly left?: unknown;
  readonly argument?: unknown;
  readonly elements?: unknown;
  readonly properties?: unknown;
  readonly value?: unknown;
}

/** Each node from here down; below one only where `look` says so. */
function walk(node: unknown, look: (node: Node) => boolean): void {
  if (Array.isArray(node)) for (const one of node) walk(one, look);
  else if (typeof node === 'object' && node !== null && 'type' in node && look(node as Node))
    walk(Object.values(node), look);
}

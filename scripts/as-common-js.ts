import { parseAst } from 'rolldown/parseAst';

interface Node {
  readonly type: string;
  readonly start: number;
  readonly end: number;
}

type Statement = ReturnType<typeof parseAst>['body'][number];

/**
 * A chunk that imports and exports as CommonJS, for `cli/load-chunks.ts`. What it imports are constants of its own, which
 * V8 knows as such; rolldown's CommonJS asks an object of another chunk each time, by a function. So no chunk may import
 * itself, and nothing that is exported may change once its chunk has run: that fails here, as does what rolldown never
 * writes. Takes and gives JavaScript.
 */
export function asCommonJs(code: string): string {
  const { body } = parseAst(code);
  const [imports, rest, exports]: [string[], string[], string[]] = [[], [], []];
  const exported = new Set<string>();
  let end = 0;
  const replace = (node: Node, text: string): void => {
    rest.push(code.slice(end, node.start), text);
    end = node.end;
  };
  for (const node of body) {
    if (node.type === 'ImportDeclaration') {
      imports.push(required(node, code));
      replace(node, '');
    } else if (node.type === 'ExportNamedDeclaration') {
      exports.push(exportedBy(node, exported));
      replace(node, '');
    } else if (node.type === 'ExportDefaultDeclaration' && !node.declaration.type.endsWith('Declaration')) {
      exports.push(`;exports.default=${code.slice(node.declaration.start, node.declaration.end)};`);
      replace(node, '');
    } else if (node.type.startsWith('Export')) {
      throw new Error(`a chunk exports by ${node.type}`);
    } else {
      for (const [expression, instead] of standInsIn(node, code)) replace(expression, instead);
    }
  }
  for (const name of laterAssigned(body))
    if (exported.has(name)) throw new Error(`"${name}" is exported, and something is assigned to it later`);
  return [...imports, ...rest, code.slice(end), ...exports].join('');
}

function required(node: Extract<Statement, { type: 'ImportDeclaration' }>, code: string): string {
  const from = `require(${code.slice(node.source.start, node.source.end)})`;
  const isBuiltin = !node.source.value.startsWith('.');
  const named: string[] = [];
  const whole: string[] = [];
  for (const one of node.specifiers) {
    const imported = one.type === 'ImportSpecifier' ? nameOf(one.imported) : one.type;
    // A built-in module is its own default export.
    const isDefault = imported === 'default' || imported === 'ImportDefaultSpecifier';
    if (imported === 'ImportNamespaceSpecifier' || (isBuiltin && isDefault))
      whole.push(`${one.local.name}=${from}`);
    else named.push(`${isDefault ? 'default' : imported}:${one.local.name}`);
  }
  if (named.length > 0) whole.push(`{${named.join()}}=${from}`);
  return whole.length === 0 ? `${from};` : `const ${whole.join()};`;
}

/** Notes what it exports by the names of the module. */
function exportedBy(
  node: Extract<Statement, { type: 'ExportNamedDeclaration' }>,
  exported: Set<string>,
): string {
  if (node.declaration || node.source) throw new Error('a chunk exports what it does not have by name');
  const given = node.specifiers.map(({ exported: to, local }) => {
    exported.add(nameOf(local));
    return `exports.${nameOf(to)}=${nameOf(local)};`;
  });
  return given.length === 0 ? '' : `;${given.join('')}`;
}

function nameOf(id: { readonly name: string } | { readonly value: unknown }): string {
  if ('name' in id) return id.name;
  throw new Error(`a chunk gives "${String(id.value)}" as a name`);
}

/** What only a module can say, in order, and what stands for it; `import()` of a package, or of what is not known here, stays. */
function standInsIn(node: unknown, code: string): readonly (readonly [Node, string])[] {
  const found: [Node, string][] = [];
  walk(node, (one) => {
    if (one.type === 'ImportExpression' && 'source' in one) {
      const { start, end } = one.source as Node;
      const id = code.slice(start, end);
      if (/^.\./.test(id)) found.push([one, `Promise.resolve().then(()=>require(${id}))`]);
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

/** What runs later than the module does: a field of a class does for each object. */
const LATER = /^(?:Function|ArrowFunction|PropertyDefinition|AccessorProperty)/;
/** Where ESTree says what is assigned to. */
const TARGETS = new Set([
  'AssignmentExpression left',
  'UpdateExpression argument',
  'ForInStatement left',
  'ForOfStatement left',
]);

/** Names of the module that something is assigned to once it has run. */
function laterAssigned(body: unknown): ReadonlySet<string> {
  const found = new Set<string>();
  const visit = (node: Node, hidden: ReadonlySet<string> | undefined): void => {
    const isLater = hidden !== undefined || LATER.test(node.type);
    const own = isLater ? declaredBy(node) : [];
    const inside =
      isLater && (hidden === undefined || own.length > 0) ? new Set([...(hidden ?? []), ...own]) : hidden;
    for (const [key, child] of Object.entries(node)) {
      if (inside && TARGETS.has(`${node.type} ${key}`))
        for (const name of namesIn(child)) if (!inside.has(name)) found.add(name);
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

/** The names that are those of a function or block itself. */
function declaredBy(node: Node): readonly string[] {
  const { params, param, id, body, init, left, cases } = node as Node & Readonly<Record<string, unknown>>;
  const own = [...namesIn(params), ...namesIn(param)];
  if (/^(?:Function|Class)Expression$/.test(node.type)) own.push(...namesIn(id));
  // In whatever block of a function.
  if (LATER.test(node.type))
    walk(body, (one) => {
      if (one.type === 'VariableDeclaration' && (one as { kind?: unknown }).kind === 'var')
        own.push(...declares(one));
      return !LATER.test(one.type);
    });
  const blocks = Array.isArray(cases) ? cases.map((one: { consequent: unknown }) => one.consequent) : [];
  for (const one of [body, init, left, ...blocks].flat()) own.push(...declares(one));
  return own;
}

function declares(statement: unknown): readonly string[] {
  const { type = '', id, declarations } = (statement ?? {}) as Readonly<Record<string, unknown>>;
  if (type === 'VariableDeclaration') return (declarations as readonly { id: unknown }[]).flatMap((one) => namesIn(one.id)); // prettier-ignore
  return type === 'FunctionDeclaration' || type === 'ClassDeclaration' ? namesIn(id) : [];
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

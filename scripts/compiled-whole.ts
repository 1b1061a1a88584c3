import { parseAst } from 'rolldown/parseAst';

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A module all of whose top-level functions V8 compiles when it is loaded, which it does for those in parentheses
 * (decision 0453): Node keeps what is compiled before a module runs, and what is compiled when it is first called would be
 * so in each start again. They are declared before everything else, as functions are; one that something may be assigned to
 * stays as it is. Takes and gives JavaScript; the module must not be one that another imports which it imports itself.
 */
export function compiledWhole(code: string): string {
  const declared: string[] = [];
  const rest: string[] = [];
  let end = 0;
  const replace = (span: Span, text: string): void => {
    rest.push(code.slice(end, span.start), text);
    end = span.end;
  };
  const inParentheses = (span: Span): string => `(${code.slice(span.start, span.end)})`;
  const { body } = parseAst(code);
  const assigned = assignedIn(body);
  for (const node of body) {
    if (node.type === 'FunctionDeclaration' && node.id && !assigned.has(node.id.name)) {
      declared.push(`var ${node.id.name}=${inParentheses(node)};`);
      replace(node, ';');
    }
    if (node.type !== 'VariableDeclaration') continue;
    for (const { init } of node.declarations)
      if (init?.type === 'ArrowFunctionExpression' || init?.type === 'FunctionExpression')
        replace(init, inParentheses(init));
  }
  return [...declared, ...rest, code.slice(end)].join('');
}

/** Every name in what is assigned to below a node, in whatever scope. */
function assignedIn(node: unknown, found = new Set<string>(), isTarget = false): ReadonlySet<string> {
  if (Array.isArray(node)) for (const one of node) assignedIn(one, found, isTarget);
  if (typeof node !== 'object' || node === null || !('type' in node)) return found;
  if (isTarget && 'name' in node && typeof node.name === 'string') found.add(node.name);
  for (const [key, child] of Object.entries(node))
    assignedIn(
      child,
      found,
      isTarget || TARGETS.some(([type, member]) => type === node.type && member === key),
    );
  return found;
}

/** Where ESTree says what is assigned to. */
const TARGETS = [
  ['AssignmentExpression', 'left'],
  ['UpdateExpression', 'argument'],
  ['ForInStatement', 'left'],
  ['ForOfStatement', 'left'],
] as const;

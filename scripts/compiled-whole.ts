import { parseAst } from 'rolldown/parseAst';

interface Span {
  readonly start: number;
  readonly end: number;
}

/**
 * A module all of whose top-level functions V8 compiles when it is loaded, which it does for those in parentheses
 * (decision 0453): Node keeps what is compiled before a module runs, and what is compiled when it is first called would be
 * so in each start again. They are declared before everything else, as functions are. Takes and gives JavaScript; the
 * module must not be one that another imports which it imports itself.
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
  for (const node of parseAst(code).body) {
    if (node.type === 'FunctionDeclaration' && node.id) {
      declared.push(`var ${node.id.name}=${inParentheses(node)};`);
      replace(node, '');
    }
    if (node.type !== 'VariableDeclaration') continue;
    for (const { init } of node.declarations)
      if (init?.type === 'ArrowFunctionExpression' || init?.type === 'FunctionExpression')
        replace(init, inParentheses(init));
  }
  return [...declared, ...rest, code.slice(end)].join('');
}

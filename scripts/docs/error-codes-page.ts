import { CODES, type CodeRow } from '@skep/core/errors/codes.ts';
import { escapeCell, markdownTable } from './to-markdown.ts';
import type { Page } from './page.ts';

const rows = Object.entries<CodeRow>(CODES).toSorted(([a], [b]) => (a < b ? -1 : 1));

export const errorCodesPage: Page = {
  file: 'error-codes.md',
  title: 'Error codes',
  brief: 'Everything that can go wrong, with its HTTP status and JSON-RPC code.',
  render: () =>
    `Every command error ends with exit status 1. The code of an error is shown with \`--debug\` and in logs.

${markdownTable(
  ['Code', 'Meaning', 'What to do', 'HTTP', 'JSON-RPC'],
  rows.map(([code, row]) => [
    `\`${code}\``,
    escapeCell(row.title),
    escapeCell(row.hint),
    String(row.httpStatus),
    row.rpcCode === undefined ? '' : String(row.rpcCode),
  ]),
)}`,
};

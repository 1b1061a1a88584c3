import { markdownTable } from './to-markdown.ts';
import { CHAIN } from '../../packages/proxy/src/call/chain.ts';
import type { Page } from './page.ts';

export const proxyChainPage: Page = {
  file: 'proxy-chain.md',
  title: 'The life of a call',
  brief: 'The steps a proxied MCP request passes, in their fixed order.',
  render: () =>
    `A request passes the steps from top to bottom, its answer back from bottom to top. Steps without settings are left
out; the order never changes.

${markdownTable(
  ['Step', 'Reads', 'Writes'],
  CHAIN.map(({ name, reads, writes }) => [name, reads.join(', '), writes.join(', ')]),
)}`,
};

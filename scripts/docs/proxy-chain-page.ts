import { markdownTable } from './to-markdown.ts';
import { chain, type Steps } from '../../packages/proxy/src/call/chain.ts';
import type { Page } from './page.ts';

const idle = (): Promise<void> => Promise.resolve();

/** Every step is present here, so that the page shows the whole chain; the compiler asks for steps that are added. */
const everyStep: Required<Steps> = {
  recovery: idle,
  origin: idle,
  bodyLimit: idle,
  audit: idle,
  auth: idle,
  clientToken: idle,
  toolFilter: idle,
  toolCallFilter: idle,
  mcpParser: idle,
  telemetry: idle,
  rateLimit: idle,
  mutatingWebhook: idle,
  validatingWebhook: idle,
  authorization: idle,
  headerForward: idle,
  outgoingToken: idle,
  transport: idle,
};

export const proxyChainPage: Page = {
  file: 'proxy-chain.md',
  title: 'The life of a call',
  brief: 'The steps a proxied MCP request passes, in their fixed order.',
  render: () =>
    `A request passes the steps from top to bottom, its answer back from bottom to top. Steps without settings are left
out; the order never changes.

${markdownTable(
  ['Step', 'Reads', 'Writes'],
  chain(everyStep).map(({ name, reads, writes }) => [name, reads.join(', '), writes.join(', ')]),
)}`,
};

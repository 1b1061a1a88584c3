import { CLIENTS, fileOf, type Client } from '@skep/cli/clients/table.ts';
import type { Page } from './page.ts';
import { escapeCell, markdownTable } from './to-markdown.ts';

const PLATFORMS = ['linux', 'darwin', 'win32'] as const;

/** A path as the person writes it; on Windows below the profile. */
function shown(client: Client, platform: (typeof PLATFORMS)[number]): string {
  const path = fileOf(client, { home: '~', platform });
  return `\`${escapeCell(platform === 'win32' ? path.replace('~', '%USERPROFILE%') : path)}\``;
}

const wordsOf = ({ words, wordMember = 'type' }: Client): string =>
  words ? `\`${wordMember}\`: ${Object.values(words).join(', ')}` : '';

export const clientsPage: Page = {
  file: 'clients.md',
  title: 'MCP clients',
  brief: 'Every client that `skep connect` knows: its file, and how a server is written into it.',
  render: () =>
    `\`skep list --format CLIENT\` prints what its file is to hold. Words are those for HTTP, SSE and commands.

${markdownTable(
  ['Client', 'Is', 'Servers under', 'URL in', 'Words', 'Named as in the registry'],
  CLIENTS.map((client) => [
    `\`${client.name}\``,
    client.title,
    `\`${client.key}\`${client.isList === true ? ' (list)' : ''}`,
    `\`${client.url}\`${client.sseUrl === undefined ? '' : `, SSE: \`${client.sseUrl}\``}`,
    wordsOf(client),
    client.namesAsRegistry === true ? 'yes' : '',
  ]),
)}

## Files

${markdownTable(
  ['Client', 'Linux', 'macOS', 'Windows'],
  CLIENTS.map((client) => [`\`${client.name}\``, ...PLATFORMS.map((platform) => shown(client, platform))]),
)}`,
};

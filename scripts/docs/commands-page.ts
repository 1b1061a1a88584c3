import { escapeCell, markdownTable } from './to-markdown.ts';
import { COMMANDS } from '../../packages/skep/src/commands.ts';
import type { Page } from './page.ts';

/** Commands without a group are for Skep itself and its completion scripts. */
const shown = COMMANDS.filter((row) => row.group !== undefined);

export const commandsPage: Page = {
  file: 'commands.md',
  title: 'Commands of `skep`',
  brief: 'What `skep` can be asked to do.',
  render: () =>
    `\`skep COMMAND --help\` prints the flags of a command; those of \`run\` are on [a page of their own](run-settings.md).

${[...new Set(shown.map(({ group }) => group))].map((group) => `## ${group}\n\n${tableOf(String(group))}`).join('\n')}`,
};

function tableOf(group: string): string {
  const rows = shown
    .filter((row) => row.group === group)
    .flatMap((row) =>
      'members' in row
        ? row.members.map((member) => ({ ...member, name: `${row.name} ${member.name}` }))
        : [row],
    );
  return markdownTable(
    ['Command', 'Also', 'What it does'],
    rows.map(({ name, aliases = [], brief }) => [
      `\`skep ${name}\``,
      aliases.map((alias) => `\`${alias}\``).join(', '),
      escapeCell(brief),
    ]),
  );
}

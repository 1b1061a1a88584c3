import { toMarkdown } from './to-markdown.ts';
import { runSettings } from '../../packages/skep/src/settings/run-settings.ts';
import type { Page } from './page.ts';

export const runSettingsPage: Page = {
  file: 'run-settings.md',
  title: 'Settings of `skep run`',
  brief: 'Every flag, environment variable and run-configuration key of `skep run`.',
  render: () =>
    `A flag wins over its environment variable, that over what the catalogue or an imported file says, then come the user's
configuration and the default; \`skep run --explain SERVER\` prints what each setting comes from. *Not available yet* means: arrives with a coming release, and is refused
until then. Durations are written as \`30s\`, \`1m\` or \`2m30s\`; \`strings\` are comma-separated and repeatable, \`list\` and
\`pairs\` are repeatable.

${toMarkdown(runSettings)}`,
};

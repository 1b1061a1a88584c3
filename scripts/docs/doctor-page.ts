import { CHECKS } from '../../packages/skep/src/doctor/checks.ts';
import { escapeCell, markdownTable } from './to-markdown.ts';
import type { Page } from './page.ts';

export const doctorPage: Page = {
  file: 'doctor.md',
  title: 'Checks of skep doctor',
  brief: 'What `skep doctor` looks at, by code, and what to do.',
  render: () =>
    `A code is never given to another check. What is said beside a finding goes before what stands here.

${markdownTable(
  ['Code', 'Check', 'What holds', 'What to do'],
  CHECKS.map(({ code, title, about, remedy }) => [`\`${code}\``, title, about, escapeCell(remedy)]),
)}`,
};

import { escapeCell, markdownTable } from './to-markdown.ts';
import { repliesOf } from '../../packages/registry/src/api/openapi/openapi.ts';
import { ROUTES } from '../../packages/registry/src/api/routes.ts';
import type { Page } from './page.ts';

export const registryRoutesPage: Page = {
  file: 'registry-routes.md',
  title: 'Endpoints of `skep-registry`',
  brief: 'Every endpoint, whom it answers, and with which statuses.',
  render: () =>
    markdownTable(
      ['Method', 'Path', 'Listener', 'Access', 'What', 'Statuses'],
      ROUTES.map((route) => [
        route.method,
        route.paths.map((path) => `\`${path}\``).join('<br>'),
        route.listener,
        typeof route.access === 'string' ? route.access : `role ${route.access.role}`,
        escapeCell(route.summary),
        Object.entries(repliesOf(route))
          .map(([status, { description }]) => `${status} ${escapeCell(description)}`)
          .join('<br>'),
      ]),
    ),
};

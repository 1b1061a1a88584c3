import { commonReplies } from '../../packages/registry/src/api/openapi/openapi.ts';
import type { Reply, Route } from '../../packages/registry/src/api/route/route.ts';
import { ROUTES } from '../../packages/registry/src/api/routes.ts';
import type { Page } from './page.ts';
import { escapeCell, markdownTable } from './to-markdown.ts';

/** Rows that may answer alike before their handler runs; what all of them answer comes first. */
const ALIKE: readonly (readonly [string, (route: Route) => boolean])[] = [
  ['every endpoint whose access is not `public`', ({ access }) => access === 'signed-in'],
  ['access `registry`', ({ access }) => access === 'registry'],
  ['access by a role', ({ access, method }) => typeof access === 'object' && method === 'GET'],
  ['takes a body', ({ body }) => body !== undefined],
  ['changes something and takes no body', ({ body, method }) => body === undefined && method === 'DELETE'],
];

function descriptionOf(reply: string | Reply): string {
  return typeof reply === 'string' ? reply : reply.description;
}

/** A line for each reply that rows of a kind share, without those that a kind before has. */
function commonRows(): string[][] {
  const seen = new Set<string>();
  return ALIKE.flatMap(([kind, isOne]) => {
    const sample = ROUTES.find(isOne);
    const replies = sample === undefined ? {} : commonReplies(sample);
    return Object.entries(replies).flatMap(([status, reply]) => {
      const text = descriptionOf(reply)
        .replace(/the role \w+/, 'the role')
        .replace(/\d+ bytes/, 'its limit (docs/reference/registry-config.md)');
      if (seen.has(text)) return [];
      seen.add(text);
      return [[kind, status, escapeCell(text)]];
    });
  });
}

export const registryRoutesPage: Page = {
  file: 'registry-routes.md',
  title: 'Endpoints of `skep-registry`',
  brief: 'Every endpoint, whom it answers, and with which statuses.',
  render: () =>
    [
      'What endpoints may answer before they look into a request:\n',
      markdownTable(['Which', 'Status', 'When'], commonRows()),
      '\nWhat each answers besides:\n',
      markdownTable(
        ['Method', 'Path', 'Listener', 'Access', 'What', 'Statuses'],
        ROUTES.map((route) => [
          route.method,
          route.paths.map((path) => `\`${path}\``).join('<br>'),
          route.listener,
          typeof route.access === 'string' ? route.access : `role ${route.access.role}`,
          escapeCell(route.summary),
          Object.entries(route.replies)
            .map(([status, reply]) => `${status} ${escapeCell(descriptionOf(reply))}`)
            .join('<br>'),
        ]),
      ),
    ].join('\n'),
};

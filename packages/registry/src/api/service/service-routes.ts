import { describeCaller } from '../../access/authority.ts';
import { plainRoute, type Route } from '../route/route.ts';

const json = (value: unknown) => (): string => JSON.stringify(value);

const PROMETHEUS_TYPE = 'text/plain; version=0.0.4; charset=utf-8';

/** Endpoints for operators: on the internal listener only, without sign-in. */
export const INTERNAL_ROUTES: readonly Route[] = [
  plainRoute({
    listener: 'internal',
    name: 'health',
    summary: 'Whether the process serves',
    path: '/health',
    replies: { 200: { description: 'It does', schema: 'Health' } },
    handler: () => ({ status: 200, body: json({ status: 'healthy' }) }),
  }),
  plainRoute({
    listener: 'internal',
    name: 'readiness',
    summary: 'Whether requests should be sent here',
    path: '/readiness',
    replies: {
      200: { description: 'They should', schema: 'Readiness' },
      503: 'Starting, stopping, or the store does not answer',
    },
    handler: async ({ ready, providersAway }) => {
      await ready();
      const away = providersAway();
      const detail = away.length === 0 ? {} : { identity_providers_away: away };
      return { status: 200, body: json({ status: 'ready', ...detail }) };
    },
  }),
  plainRoute({
    listener: 'internal',
    name: 'version',
    summary: 'What is running',
    path: '/version',
    replies: { 200: { description: 'Version, build and runtime', schema: 'Version' } },
    handler: ({ build }) => ({ status: 200, body: json(build) }),
  }),
  plainRoute({
    listener: 'internal',
    name: 'metrics',
    summary: 'Metrics in the Prometheus text format',
    path: '/metrics',
    replies: {
      200: { description: 'All metrics' },
      404: 'Metrics are not enabled',
      503: 'Two others are reading them',
    },
    handler: async ({ metrics }) => {
      const text = await metrics();
      return { status: 200, type: PROMETHEUS_TYPE, body: () => text };
    },
  }),
];

/** Answers who is calling (docs/behaviour/registry.md#me). */
export const me = plainRoute({
  listener: 'public',
  name: 'getCaller',
  audit: 'user.info',
  summary: 'Who the caller is and which roles it holds',
  path: '/v1/me',
  access: 'signed-in',
  replies: {
    200: { description: 'Subject and roles', schema: 'Caller' },
    401: 'There is no valid token, or the registry knows no callers',
  },
  handler: (_, { authority }) => ({ status: 200, body: () => JSON.stringify(describeCaller(authority)) }),
});

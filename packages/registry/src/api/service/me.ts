import { describeCaller } from '../../access/caller.ts';
import { plainRoute } from '../route/route.ts';

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

import { formatDuration } from '@skep/core/time/duration.ts';
import { z } from 'zod';
import { duration, httpUrl } from '../../shape/texts.ts';
import { sourceKind } from '../kind.ts';
import { apiSource, TIMEOUT_MS } from './api-source.ts';

export const apiKind = sourceKind({
  shape: z.strictObject({
    endpoint: httpUrl.describe('a registry that speaks the official API; `/v0.1/servers` is added'),
    timeout: duration({ milliseconds: 300_000, text: '5m0s' })
      .prefault(formatDuration(TIMEOUT_MS))
      .describe('of one request, at most `5m`'),
  }),
  brief: 'another registry',
  formats: ['upstream'],
  mayBeEmpty: true,
  open: ({ endpoint, timeout }, { name, clock, limits, before, client }) => {
    const holdsBundles = before !== undefined && before.counts.skill + before.counts.plugin > 0;
    const options = { name, endpoint, limits, holdsBundles, timeoutMs: timeout };
    return apiSource(options, { open: client, now: () => clock.now() });
  },
});

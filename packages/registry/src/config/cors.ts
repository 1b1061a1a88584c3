import { z } from 'zod';
import { duration } from '../shape/texts.ts';

const MAX_AGE = '10m';

const origin = z.string().superRefine((text, context) => {
  const near = originOf(text);
  if (text === '*' || near === text) return;
  const hint = near === undefined ? '' : `; did you mean "${near}"?`;
  const message = `must be "*" or an origin such as "https://app.example", not "${text}"${hint}`;
  context.addIssue({ code: 'custom', message });
});

/** The origin of an address as browsers write it. Patterns are none, which a URL's host would allow. */
function originOf(text: string): string | undefined {
  const url = text.includes('*') ? null : URL.parse(text);
  return url !== null && /^https?:$/.test(url.protocol) ? url.origin : undefined;
}

export const corsShape = z
  .strictObject({
    allowedOrigins: z
      .array(origin)
      .min(1, 'must hold at least one origin; leave cors out to allow none')
      .describe('origins whose pages may call the registry from a browser; "*" for all'),
    maxAge: duration({ milliseconds: 86_400_000, text: '24h' })
      .prefault(MAX_AGE)
      .describe('for how long a browser may remember the permission'),
  })
  .superRefine(({ allowedOrigins }, context) => {
    if (allowedOrigins.length < 2 || !allowedOrigins.includes('*')) return;
    const message = '"*" allows every origin, so no other may stand beside it';
    context.addIssue({ code: 'custom', path: ['allowedOrigins'], message });
  })
  .transform(({ allowedOrigins, maxAge }) => ({
    /** `*`, or origins as browsers write them. */
    allowedOrigins: allowedOrigins.includes('*') ? ('*' as const) : allowedOrigins,
    /** Seconds for which a browser may remember a permission. */
    maxAge: Math.round(maxAge / 1000),
  }));

/** Which web pages of other origins may call the registry from a browser. */
export type CorsSettings = z.infer<typeof corsShape>;

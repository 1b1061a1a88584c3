import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import { refOf } from '../sources/git-ref.ts';
import { parseRepository } from '../sources/git-repository-url.ts';
import { globFault } from '../sync/filter-glob.ts';
import { claims, duration, nonEmpty } from './texts.ts';

/**
 * The members of a source (specification §1.3.2), in the configuration file and in a request of the admin API. Strict: an
 * unknown member is a problem. How members depend on each other is checked by `check-sources.ts`.
 */
const git = z
  .strictObject({
    repository: nonEmpty.superRefine((value, context) => {
      const message = faultOf(() => parseRepository(value));
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    }),
    branch: nonEmpty.optional(),
    tag: nonEmpty.optional(),
    commit: nonEmpty.optional(),
    path: nonEmpty.optional(),
    auth: z.strictObject({ username: nonEmpty, passwordFile: nonEmpty }).optional(),
  })
  .superRefine(({ branch, tag, commit }, context) => {
    const keys = {
      ...(branch === undefined ? {} : { branch }),
      ...(tag === undefined ? {} : { tag }),
      ...(commit === undefined ? {} : { commit }),
    };
    const message = faultOf(() => refOf(keys));
    if (message !== undefined) context.addIssue({ code: 'custom', message });
  });

const httpUrl = z.string().superRefine((value, context) => {
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (url === undefined || url.host === '') {
    context.addIssue({ code: 'custom', message: 'must be an absolute URL with host' });
  } else if (url.protocol !== 'http:' && url.protocol !== 'https:') {
    context.addIssue({ code: 'custom', message: 'must use http or https scheme' });
  }
});

const api = z.strictObject({
  endpoint: httpUrl,
  timeout: duration({ milliseconds: 300_000, text: '5m0s' }).optional(),
});

/** `data` comes through the admin API only; `check-sources.ts` refuses it in a file. */
const file = z.strictObject({
  path: nonEmpty.optional(),
  url: httpUrl.optional(),
  data: nonEmpty.optional(),
  timeout: duration().optional(),
});

const managed = z.strictObject({});

const kubernetes = z.strictObject({ namespaces: z.array(nonEmpty).optional() });

const pattern = z.string().superRefine((value, context) => {
  const message = globFault(value);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

const rule = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ include: z.array(item).optional(), exclude: z.array(item).optional() });

export const filterShape = z.strictObject({
  names: rule(pattern).optional(),
  tags: rule(nonEmpty).optional(),
});

/** The block of each kind; exactly one is present in a source. */
export const kindShapes = { git, api, file, managed, kubernetes } as const;

/** Everything of a source but its name. */
export const sourceMembers = {
  format: z.enum(['toolhive', 'upstream', '']).optional(),
  git: git.optional(),
  api: api.optional(),
  file: file.optional(),
  managed: managed.optional(),
  kubernetes: kubernetes.optional(),
  syncPolicy: z.strictObject({ interval: duration() }).optional(),
  filter: filterShape.optional(),
  claims: claims.optional(),
};

export const sourceBody = z.strictObject(sourceMembers);

export type SourceBody = z.infer<typeof sourceBody>;

function faultOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof SkepError) return error.message;
    throw error;
  }
}

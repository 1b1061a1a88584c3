import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import { checkedPath } from '../sources/git/git-source.ts';
import { refOf } from '../sources/git/ref.ts';
import { parseRepository } from '../sources/git/repository-url.ts';
import { globFault } from '../sources/filter/glob.ts';
import { claims, duration, nonEmpty } from '../shape/texts.ts';

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
    branch: nonEmpty
      .optional()
      .describe('at most one of branch, tag and commit; the default branch of the server when absent'),
    tag: nonEmpty.optional().describe('instead of a branch'),
    commit: nonEmpty
      .optional()
      .describe('instead of a branch: all 40 digits (64 of a SHA-256 repository), in quotes'),
    path: nonEmpty
      .superRefine((value, context) => {
        const message = faultOf(() => checkedPath(value));
        if (message !== undefined) context.addIssue({ code: 'custom', message });
      })
      .optional()
      .describe('the catalogue, from the top of the repository; `registry.json` when absent'),
    auth: z
      .strictObject({
        username: nonEmpty.optional().describe('of HTTP basic authentication, with passwordFile'),
        passwordFile: nonEmpty.optional().describe('absolute; read again at every look'),
        sshKeyFile: nonEmpty
          .regex(/^[\w./@+=:-]+$/, 'may have letters, digits and ./_@+=:- only')
          .optional()
          .describe(
            'absolute; ssh then uses no other key, no agent and no settings of the account. Required for ssh through the API',
          ),
      })
      .superRefine(({ username, passwordFile, sshKeyFile }, context) => {
        const message = authFault([username, passwordFile], sshKeyFile);
        if (message !== undefined) context.addIssue({ code: 'custom', message });
      })
      .optional()
      .describe('how to sign in'),
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
  endpoint: httpUrl.describe('a registry that speaks the official API; `/v0.1/servers` is added'),
  timeout: duration({ milliseconds: 300_000, text: '5m0s' })
    .optional()
    .describe('of one request, at most `5m`; `10s` when absent'),
});

/** `data` comes through the admin API only; `check-sources.ts` refuses it in a file. */
const file = z.strictObject({
  path: nonEmpty.optional().describe('from the folder of the configuration; either it or url'),
  url: httpUrl.optional().describe('http or https; either it or path'),
  data: nonEmpty.optional().describe('a catalogue itself; through the API only'),
  timeout: duration().optional().describe('of a look at url; `30s` when absent'),
});

const managed = z.strictObject({});

const kubernetes = z.strictObject({
  namespaces: z.array(nonEmpty).optional().describe('all when absent'),
});

const pattern = z.string().superRefine((value, context) => {
  const message = globFault(value);
  if (message !== undefined) context.addIssue({ code: 'custom', message });
});

const rule = <Item extends z.ZodType>(item: Item) =>
  z.strictObject({ include: z.array(item).optional(), exclude: z.array(item).optional() });

export const filterShape = z.strictObject({
  names: rule(pattern).optional().describe('patterns with `*`, `?`, `[…]` and `{a,b}`; `*` also matches `/`'),
  tags: rule(nonEmpty).optional().describe('exact tags of the publisher'),
});

/** Each entry is compared with all of them. */
const MOST_PATTERNS = 1_000;
const MOST_PATTERN_CHARACTERS = 65_536;

/** What is stored already stays as it is, so this is not said of its shape. */
function filterSizeFault({ names, tags }: z.infer<typeof filterShape>): string | undefined {
  const all = [names, tags].flatMap((one) => [...(one?.include ?? []), ...(one?.exclude ?? [])]);
  if (all.length > MOST_PATTERNS)
    return `must not have more than ${String(MOST_PATTERNS)} patterns and tags (has ${String(all.length)})`;
  const length = all.reduce((sum, text) => sum + text.length, 0);
  return length > MOST_PATTERN_CHARACTERS
    ? `must not have more than ${String(MOST_PATTERN_CHARACTERS)} characters in all its patterns and tags together (has ${String(length)})`
    : undefined;
}

/** The block of each kind; exactly one is present in a source. */
export const kindShapes = { git, api, file, managed, kubernetes } as const;

/** Everything of a source but its name. */
export const sourceMembers = {
  format: z
    .enum(['toolhive', 'upstream', ''])
    .optional()
    .describe('which shapes of catalogue are accepted; found out when absent'),
  git: git
    .optional()
    .describe(
      'a file in a git repository; a source is exactly one of git, api, file, managed and kubernetes',
    ),
  api: api.optional().describe('another registry'),
  file: file.optional().describe('a file on this machine or at an address'),
  managed: managed.optional().describe('what is published through the API; at most one source'),
  kubernetes: kubernetes.optional().describe('*not available yet*'),
  syncPolicy: z
    .strictObject({ interval: duration().describe('between two looks, as `30m`') })
    .optional()
    .describe('required for git, api and file'),
  filter: filterShape
    .superRefine((filter, context) => {
      const message = filterSizeFault(filter);
      if (message !== undefined) context.addIssue({ code: 'custom', message });
    })
    .optional()
    .describe('which entries are taken; what is excluded stays out whatever is included'),
  claims: claims.optional(),
};

export const sourceBody = z.strictObject(sourceMembers);

export type SourceBody = z.infer<typeof sourceBody>;

function authFault(password: readonly (string | undefined)[], key: string | undefined): string | undefined {
  const given = password.filter((part) => part !== undefined).length;
  if (given > 0 && key !== undefined) return 'takes either username and passwordFile, or sshKeyFile';
  return given === 1 ? 'takes username and passwordFile together' : undefined;
}

function faultOf(check: () => unknown): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (error instanceof SkepError) return error.message;
    throw error;
  }
}

import { resolve } from 'node:path';
import { localIdentity, tokenIdentity, type Identity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printableLines } from '@skep/core/terminal/printable.ts';
import type { Explanation } from '@skep/proxy/steps/authz/cedar.ts';
import type { PolicyReport } from '@skep/proxy/steps/authz/cedar-report.ts';
import { HINTS, OPERATIONS, type Hints, type Question } from '@skep/proxy/steps/authz/question.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import { currentAuthz, readAuthzFile } from '../run-config/authz.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { toJsonText } from '../workloads/to-json.ts';

const settings = [
  ...settingsOf({ group: 'What decides' }, [
    flag('path', 'config', 'This authorization configuration instead of that of a server', {
      placeholder: 'file',
    }),
  ]),
  ...settingsOf({ group: 'Who asks (you, where nothing says so)' }, [
    flag('string', 'claims', 'Claims of the caller: a JSON object, or a file that holds one', {
      placeholder: 'json|file',
      excludes: ['token'],
    }),
    flag('path', 'token', 'A file with a token of the caller; its claims are believed, not checked', {
      placeholder: 'file',
    }),
  ]),
  ...settingsOf({ group: 'About what' }, [
    flag('string', 'tool', 'A call of this tool, by the name that the server has for it', {
      placeholder: 'name',
      excludes: ['prompt', 'resource'],
    }),
    flag('string', 'prompt', 'This prompt', { placeholder: 'name', excludes: ['resource'] }),
    flag('string', 'resource', 'Reading this resource', { placeholder: 'uri' }),
    flag('string', 'args', 'Arguments of the call, a JSON object', { placeholder: 'json' }),
    flag('strings', 'hint', 'What the server says of the tool: readOnlyHint, destructiveHint=false, …', {
      placeholder: 'hint',
      needs: ['tool'],
    }),
  ]),
  ...formatSettings,
  ...commonSettings,
] as const;

export const authzExplain = defineCommand({
  usage: 'skep authz explain [flags] [SERVER]',
  summary: 'Say why a caller may or may not use something',
  description: [
    'Cedar itself is asked, policy by policy and condition by condition: which decided, and what would have to hold for another answer.',
  ],
  examples: [
    {
      command: `skep authz explain files --tool write_file --claims '{"sub":"ann","groups":["readers"]}'`,
      what: 'May she?',
    },
    { command: 'skep authz explain --config policies.yaml --tool look --hint readOnlyHint', what: 'May I?' },
  ],
  positionals: [{ name: 'SERVER', required: false }],
  settings,
  async run({ values, positionals: [server] }, context) {
    const question = questionOf(values);
    const { document, name } = await documentOf(server, values.config, context);
    const identity = await callerOf(values, context);
    const found = await explain(document, { name, identity, question });
    const { kind, id } = question;
    if (values.format === 'json') context.terminal.out(toJsonText({ ...found, question: { kind, id } }));
    else context.terminal.out(printableLines(inWords(found, question)));
  },
});

type Found = Explanation & { readonly by: 'policies' | 'decision point' };

async function explain(
  document: Readonly<Record<string, unknown>>,
  { name, identity, question }: { name: string; identity: Identity; question: Question },
): Promise<Found> {
  const { readRules } = await import('@skep/proxy/steps/authz/rules.ts');
  const rules = readRules(document);
  const services = { name, log: silentLog };
  if (rules.type === 'cedarv1') {
    const { openCedar } = await import('@skep/proxy/steps/authz/cedar.ts');
    return { by: 'policies', ...(await openCedar(rules, services)).explain(identity, question) };
  }
  const { openPdp } = await import('@skep/proxy/steps/authz/pdp.ts');
  const pdp = openPdp(rules, services);
  try {
    const allowed = await pdp.decideFor(identity)(question);
    return { by: 'decision point', allowed, decidedBy: [], errors: [], caller: undefined, policies: [] };
  } finally {
    pdp.close?.();
  }
}

async function documentOf(
  server: string | undefined,
  file: string | undefined,
  { places, cwd }: Context,
): Promise<{ readonly document: Readonly<Record<string, unknown>>; readonly name: string }> {
  if (file !== undefined)
    return { document: await readAuthzFile(resolve(cwd, file)), name: server ?? 'server' };
  if (server === undefined)
    throw new SkepError('usage/missing-argument', {
      message: 'whose policies?',
      hint: 'name a server, or a file with --config',
    });
  const found = await currentAuthz(await loadRunConfig(places, server));
  if (found !== undefined) return { document: found.document, name: server };
  throw new SkepError('usage/invalid-value', {
    message: `"${server}" has no policies: everybody may use everything`,
    hint: 'run it with --authz-config, or name a file with --config',
  });
}

interface Asked {
  readonly tool?: string | undefined;
  readonly prompt?: string | undefined;
  readonly resource?: string | undefined;
  readonly args?: string | undefined;
  readonly hint?: readonly string[] | undefined;
}

function questionOf({ tool, prompt, resource, args, hint = [] }: Asked): Question {
  if (args !== undefined && !isRecord(parsedJson(args))) throw invalid('--args is not a JSON object');
  if (tool !== undefined) return { kind: 'tool', id: tool, args, hints: hintsOf(hint) };
  if (prompt !== undefined) return { kind: 'prompt', id: prompt, args };
  if (resource !== undefined) return { kind: 'resource', id: resource };
  throw new SkepError('usage/missing-argument', {
    message: 'what is it about?',
    hint: 'give --tool, --prompt or --resource',
  });
}

function hintsOf(given: readonly string[]): Hints {
  return Object.fromEntries(
    given.map((text) => {
      const [, name, value = 'true'] = /^(\w+)(?:=(true|false))?$/u.exec(text) ?? [];
      const hint = HINTS.find((one) => one === name);
      if (hint === undefined) throw invalid(`--hint "${text}" is none of ${HINTS.join(', ')}`);
      return [hint, value === 'true'];
    }),
  );
}

async function callerOf(
  { claims, token }: { readonly claims?: string | undefined; readonly token?: string | undefined },
  { cwd, osUser, clock }: Context,
): Promise<Identity> {
  const limits = { maxBytes: 64 * 1024 };
  if (claims !== undefined) {
    const text = claims.trimStart().startsWith('{')
      ? claims
      : await readText(resolve(cwd, claims), { ...limits, what: 'claims' });
    return identityOf(parsedJson(text), '--claims is not a JSON object');
  }
  if (token === undefined) return localIdentity(osUser, clock.now());
  const text = await readText(resolve(cwd, token), { ...limits, what: 'token' });
  const [, payload = ''] = text.trim().split('.');
  return identityOf(
    parsedJson(Buffer.from(payload, 'base64url').toString()),
    `"${token}" holds no JWT, so its claims are not known`,
  );
}

function identityOf(claims: unknown, otherwise: string): Identity {
  if (!isRecord(claims)) throw invalid(otherwise);
  const { sub } = claims;
  return tokenIdentity(claims, typeof sub === 'string' ? sub : '');
}

function invalid(message: string): SkepError {
  return new SkepError('usage/invalid-value', { message });
}

function inWords(found: Found, { kind, id }: Question): string {
  const { caller, allowed } = found;
  const who = caller && [nameOf(caller.uid), ...caller.parents.map((one) => `in ${nameOf(one)}`)].join(' ');
  const what = `${OPERATIONS[kind].action} of ${JSON.stringify(id)}${who === undefined ? '' : ` by ${who}`}`;
  return [`${allowed ? 'yes' : 'no '}  ${what}`, ...reasonsOf(found).map((line) => `     ${line}`), ''].join('\n');
} // prettier-ignore

function nameOf({ type, id }: { readonly type: string; readonly id: string }): string {
  return `${type}::${JSON.stringify(id)}`;
}

function reasonsOf({ by, allowed, caller, policies, errors }: Found): readonly string[] {
  if (by === 'decision point') return ['the decision point said so, or could not be asked'];
  if (caller === undefined) return ['a caller without a subject may use nothing'];
  const applying = (effect: PolicyReport['effect']): readonly PolicyReport[] =>
    policies.filter((one) => one.effect === effect && one.applies);
  const permits = applying('permit').map((one) => `${titleOf(one)} permits it`);
  if (allowed) return permits;
  const failed = errors.map(
    ({ policy, message }) => `${policy} cannot be evaluated, which denies: ${message}`,
  );
  const forbids = applying('forbid').map((one) => `${titleOf(one)} forbids it`);
  if (permits.length > 0) return [...failed, ...forbids, ...permits.map((line) => `${line} otherwise`)];
  const wanted = policies
    .filter(({ effect }) => effect === 'permit')
    .map((one) => `${titleOf(one)} would permit it, if: ${one.unmet.join('; ')}`);
  return [...failed, ...forbids, 'no policy permits it', ...wanted];
}

function titleOf({ policy, id }: PolicyReport): string {
  return id === undefined ? policy : `${policy} (${id})`;
}

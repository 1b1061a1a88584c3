import type { Identity } from '@skep/auth/token/identity.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { openRequester, withDeadline } from '@skep/core/fetch/requester.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { repeatedMember } from '@skep/core/json/scan.ts';
import type { Log } from '@skep/core/log/log.ts';
import { member } from '../../message/json-rpc.ts';
import { OPERATIONS, type Authorizer, type Question } from './question.ts';
import type { PdpRules } from './rules.ts';

interface PdpServices {
  /** The workload. */
  readonly name: string;
  readonly log: Log;
}

const MAX_ANSWER_BYTES = 64 * 1024;

/**
 * Asks a policy decision point each time: what it answered a moment ago says nothing. Whatever is no clear yes, an outage too,
 * is a no.
 */
export function openPdp(rules: PdpRules, { name, log }: PdpServices): Authorizer {
  // Whoever configures it says where it is; it often runs beside the proxy.
  const requester = openRequester({ allowPrivate: true, verify: rules.verify });
  const url = new URL(rules.url);
  url.pathname = `${url.pathname.replace(/\/+$/u, '')}/decision`;
  const ask = (body: string): Promise<boolean> =>
    withDeadline({ url, timeoutMs: rules.timeoutMs, signal: undefined }, async (signal) => {
      const headers = { 'content-type': 'application/json', accept: 'application/json' };
      const showTo = () => ({ headers: { ...headers, 'accept-encoding': 'identity' } });
      const answer = await requester.send(url, { method: 'POST', body, showTo, redirects: 'answer', signal });
      if (answer.status !== 200) {
        answer.drop();
        log.warn({ status: answer.status }, 'the policy decision point gave no decision');
        return false;
      }
      const bytes = await readLimited(answer.body, MAX_ANSWER_BYTES, answer.headers['content-length']);
      return member(parsedJson(bytes.toString('utf8')), 'allow') === true;
    });
  return {
    decideFor(identity) {
      const principal = principalOf(identity, rules.claims);
      return async (question) => {
        if (identity.subject === '' || question.id === '') return false;
        try {
          const body = bodyOf(principal, question, name, rules);
          return body !== undefined && (await ask(body));
        } catch (err) {
          log.warn({ err }, 'the policy decision point gave no decision');
          return false;
        }
      };
    },
    close: () => requester.close(),
  };
}

/**
 * The arguments as they go on to the server, to the character; undefined where one is there twice, for the server may heed
 * another than the decision point.
 */
function bodyOf(
  principal: object,
  { kind, id, args }: Question,
  server: string,
  { tells }: PdpRules,
): string | undefined {
  const { operation } = OPERATIONS[kind];
  const told = tells.args ? args : undefined;
  if (told !== undefined && repeatedMember(told) !== undefined) return undefined;
  const about = JSON.stringify({
    principal,
    operation: `mcp:${kind}:${operation}`,
    resource: `mrn:mcp:${server}:${kind}:${id}`,
  });
  const mcp = [
    ...(tells.operation ? [JSON.stringify({ feature: kind, operation, resource_id: id }).slice(1, -1)] : []),
    ...(told === undefined ? [] : [`"args":${told}`]),
  ];
  const context = mcp.length === 0 ? '{}' : `{"mcp":{${mcp.join(',')}}}`;
  return `${about.slice(0, -1)},"context":${context}}`;
}

/** The caller as the decision point knows callers; claims that are not there are left out. */
function principalOf({ subject, claims }: Identity, mapping: PdpRules['claims']): object {
  const { scope } = claims;
  const scopes = typeof scope === 'string' ? scope.split(/\s+/u).filter(Boolean) : claims['scopes'];
  if (mapping === 'standard')
    return { sub: subject, roles: claims['roles'], groups: claims['groups'], scopes };
  const own = ['roles', 'groups', 'clearance', 'annotations'].map((name) => [
    `m${name}`,
    claims[`m${name}`] ?? claims[name],
  ]);
  return { sub: subject, ...Object.fromEntries(own), scopes };
}

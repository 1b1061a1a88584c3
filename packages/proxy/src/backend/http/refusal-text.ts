import { CODES } from '@skep/core/errors/codes.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { memberAt } from '../../message/json-rpc.ts';

/** Of a body in which reasons are looked for. */
export const MAX_READ = 8 * 1024;
const MAX_SHOWN = 200;
/** Where servers, and what stands before them, say why. */
const REASONS = [['error', 'message'], ['error_description'], ['message'], ['detail'], ['title'], ['error']];

/**
 * How the refusal of a server is told to a client, by the body of its answer: with its own words where it has any, in one printable
 * line. Long words are left out, which reasons are not and what the server was shown may be (decision 0349), and all of them where one
 * of `secrets` is among them: values of headers that the server was sent.
 */
export function refusalText(body: string, secrets: readonly string[]): string {
  const reason = reasonIn(body);
  const words = printable(isTelling(reason, secrets) ? '' : reason.replace(/[\w.~+/=%-]{24,}/gu, '…')).trim();
  const shown = words.length > MAX_SHOWN ? `${words.slice(0, MAX_SHOWN).toWellFormed()}…` : words;
  const { title } = CODES['proxy/server-refused'];
  return shown === '' ? title : `${title}: ${shown}`;
}

/** A header may be a scheme and a token; a server may send it back as an address or a form has it. */
function isTelling(reason: string, secrets: readonly string[]): boolean {
  const spellings = [
    reason,
    reason.replace(/%([\dA-F]{2})/giu, (_, code: string) => String.fromCharCode(parseInt(code, 16))),
  ];
  const parts = secrets
    .flatMap((secret) => [secret, secret.split(' ').at(-1) ?? ''])
    .filter((one) => one !== '');
  return parts.some((secret) => spellings.some((spelling) => spelling.includes(secret)));
}

function reasonIn(body: string): string {
  const text = body.slice(0, MAX_READ).trim();
  const value = parsedJson(text);
  if (isRecord(value)) {
    const said = REASONS.map((path) => memberAt(value, path));
    return said.find((one) => typeof one === 'string') ?? '';
  }
  if (typeof value === 'string') return value;
  // A page is for browsers.
  return value === undefined && !/^[<[{]/u.test(text) ? text : '';
}

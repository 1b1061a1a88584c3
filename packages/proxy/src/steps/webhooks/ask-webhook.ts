import { createHmac, randomUUID } from 'node:crypto';
import type { Identity } from '@skep/auth/token/identity.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { readLimited } from '@skep/core/fetch/read-limited.ts';
import { openRequester, withDeadline, type ClientIdentity } from '@skep/core/fetch/requester.ts';
import { readBytes, readText } from '@skep/core/files/read-limited.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { judge } from '@skep/core/json/judge.ts';
import { parseLossless } from '@skep/core/json/lossless.ts';
import { utcTime, type Clock } from '@skep/core/time/clock.ts';
import { delegationOf } from '../../call/delegation.ts';
import type { WebhookSettings } from './settings.ts';

/** What a webhook is told about one call. */
export interface Question {
  /** The message, as it is. */
  readonly text: string;
  readonly identity: Identity | undefined;
  readonly sourceIp: string;
}

/** What it says. `why` is for the log: nothing of it is the client's. */
export type Verdict =
  | { readonly is: 'allowed'; readonly patchType: unknown; readonly patch: unknown }
  | { readonly is: 'denied'; readonly unprocessable: boolean; readonly why: string }
  | { readonly is: 'failed'; readonly why: string };

export interface Webhook extends Pick<WebhookSettings, 'name' | 'failurePolicy'> {
  /** Never rejects. */
  ask(question: Question): Promise<Verdict>;
  close(): void;
}

export interface WebhookServices {
  readonly clock: Clock;
  /** Of the workload. */
  readonly name: string;
  readonly transport: string;
}

const VERSION = 'v0.1.0';
const MAX_ANSWER_BYTES = 1024 * 1024;
const MAX_FILE_BYTES = 64 * 1024;
const UNPROCESSABLE = 422;
const MAX_WHY = 500;

/** Reads the files of the settings. Fails with `file/*`, `fetch/ca-bundle`, or `config/invalid` for an empty secret. */
export async function openWebhook(settings: WebhookSettings, services: WebhookServices): Promise<Webhook> {
  const { name, failurePolicy, caPath, verify, secret, timeoutMs } = settings;
  const url = new URL(settings.url);
  const identity = await identityOf(settings);
  const ca = caPath === undefined ? undefined : await readCaBundle(caPath);
  // One that is not there, or empty, is told now.
  await keyOf(name, secret);
  const requester = openRequester({ allowPrivate: true, ca, verify });
  const send = async (question: Question, signal: AbortSignal): Promise<Verdict> => {
    const uid = randomUUID();
    const body = bodyFor(question, uid, services);
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': `${Buffer.byteLength(body)}`,
      'Accept-Encoding': 'identity',
      ...signatureOf(body, await keyOf(name, secret), services.clock),
    };
    const answer = await requester.send(url, {
      method: 'POST',
      body,
      showTo: () => ({ headers, ...(identity && { identity }) }),
      redirects: 'answer',
      signal,
    });
    const { status } = answer;
    if (status !== 200) {
      answer.drop();
      if (status === UNPROCESSABLE) return { is: 'denied', unprocessable: true, why: 'HTTP 422' };
      return { is: 'failed', why: `HTTP ${status}` };
    }
    const bytes = await readLimited(answer.body, MAX_ANSWER_BYTES, answer.headers['content-length']);
    return verdictOf(bytes.toString('utf8'), uid);
  };
  return {
    name,
    failurePolicy,
    async ask(question) {
      try {
        return await withDeadline({ url, timeoutMs, signal: undefined }, (signal) => send(question, signal));
      } catch (error) {
        return { is: 'failed', why: error instanceof SkepError ? error.message : String(error) };
      }
    },
    close: () => requester.close(),
  };
}

async function identityOf({ certPath, keyPath }: WebhookSettings): Promise<ClientIdentity | undefined> {
  if (certPath === undefined || keyPath === undefined) return undefined;
  // One after the other, so that of two that are missing the same one is named each time.
  const cert = await readText(certPath, { maxBytes: MAX_FILE_BYTES, what: 'client certificate' });
  const key = await readText(keyPath, { maxBytes: MAX_FILE_BYTES, what: 'client key' });
  return { cert, key };
}

async function keyOf(name: string, secret: WebhookSettings['secret']): Promise<Buffer | undefined> {
  if (secret === undefined) return undefined;
  const key =
    'file' in secret
      ? await readBytes(secret.file, { maxBytes: MAX_FILE_BYTES, what: 'HMAC secret' })
      : Buffer.from(secret.value);
  if (key.length > 0) return key;
  throw new SkepError('config/invalid', { message: `the HMAC secret of the webhook "${name}" is empty` });
}

function signatureOf(body: string, key: Buffer | undefined, clock: Clock): Readonly<Record<string, string>> {
  if (key === undefined) return {};
  const seconds = `${Math.floor(clock.now() / 1_000)}`;
  const signature = createHmac('sha256', key).update(`${seconds}.${body}`).digest('hex');
  return { 'X-Skep-Timestamp': seconds, 'X-Skep-Signature': `sha256=${signature}` };
}

/** The message goes in as the text that it is, so that the webhook judges what the server will read. */
function bodyFor({ text, identity, sourceIp }: Question, uid: string, services: WebhookServices): string {
  const head = JSON.stringify({
    version: VERSION,
    uid,
    timestamp: utcTime(services.clock),
    principal: identity === undefined ? null : principalOf(identity),
  });
  const context = JSON.stringify({
    server_name: services.name,
    source_ip: sourceIp,
    transport: services.transport,
  });
  return `${head.slice(0, -1)},"mcp_request":${text},"context":${context}}`;
}

function principalOf(identity: Identity): object {
  const { subject: sub, name, email, groups, claims } = identity;
  return { sub, platform_user_id: sub, name, email, groups, claims, delegation: delegationOf(identity) };
}

function verdictOf(text: string, uid: string): Verdict {
  const said = judge(text) === 'json' ? parseLossless(text, { maxBytes: MAX_ANSWER_BYTES }) : undefined;
  if (!isRecord(said)) return { is: 'failed', why: 'the answer is no JSON object' };
  const { allowed, uid: answered, patch, patch_type: patchType } = said;
  if (answered !== undefined && answered !== uid)
    return { is: 'failed', why: 'the answer is to another uid' };
  if (allowed === true) return { is: 'allowed', patchType, patch };
  if (allowed === false) return { is: 'denied', unprocessable: false, why: reasonIn(said) };
  return { is: 'failed', why: 'the answer does not say whether the call is allowed' };
}

function reasonIn({ code, message, reason }: Readonly<Record<string, unknown>>): string {
  const texts = [code, reason, message].filter((one) => typeof one === 'string' || typeof one === 'number');
  return texts.join(': ').slice(0, MAX_WHY);
}

import type { Code } from '@skep/core/errors/codes.ts';
import type { Front } from '../backend/backend.ts';
import type { Call, Incoming } from '../call/call.ts';
import type { Step } from '../call/chain.ts';
import { refuse } from '../call/refuse.ts';
import { eraOf } from '../message/era.ts';
import { readBodyOnce } from '../message/body-message.ts';
import { idOf, type Unreadable } from '../message/json-rpc.ts';
import { hasLookalikes } from '../message/lookalikes.ts';
import { KNOWN_VERSIONS } from '../message/protocol-version.ts';

const UNREADABLE: Readonly<Record<Unreadable, Code>> = {
  'not-json': 'proxy/not-json',
  'too-deep': 'proxy/too-deep',
  batch: 'proxy/batch',
  'not-json-rpc': 'proxy/not-json-rpc',
};

const JSON_TYPE = 'application/json';
const OPEN_ARRAY = 0x5b;
function isWhite(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Reads a POST's message and revision, and refuses what no later step could look into. */
export function mcpParser({ revisions, serves }: Pick<Front, 'revisions' | 'serves'>): Step {
  return async (call, next) => {
    if (call.req.method === 'POST' && !(await readPost(call, serves))) return;
    if (revisions === 'known' && !hasKnownVersion(call)) return;
    await next();
  };
}

/** Resolves false when the call has been answered. */
async function readPost(call: Call, serves: Front['serves']): Promise<boolean> {
  const body = await call.readBody();
  if (startsArray(body)) return refuseCall(call, 'proxy/batch');
  // Browsers ask before they send this type across origins, and send others without asking.
  if (!isJson(call.req.headers['content-type'])) return refuseCall(call, 'proxy/media-type');
  const { message } = (call.read = readBodyOnce(body, call.read));
  if (typeof message === 'string') return refuseCall(call, UNREADABLE[message]);
  if (hasLookalikes(message)) {
    refuse(call.res, 'proxy/params-ambiguous', { id: idOf(message) });
    return false;
  }
  const verdict = eraOf(call.req.headers, message, serves);
  if (verdict.era === 'rejected') {
    refuse(call.res, verdict.code, { id: idOf(message), data: verdict.data });
    return false;
  }
  call.incoming = { message, era: verdict.era } satisfies Incoming;
  return true;
}

function refuseCall(call: Call, code: Code): false {
  refuse(call.res, code);
  return false;
}

function hasKnownVersion(call: Call): boolean {
  const version = call.req.headers['mcp-protocol-version'];
  if (version === undefined || (typeof version === 'string' && KNOWN_VERSIONS.includes(version.trim())))
    return true;
  refuse(call.res, 'proxy/version-unsupported', {
    id: call.incoming && idOf(call.incoming.message),
    message: `Unsupported protocol version (supported versions: ${KNOWN_VERSIONS.join(', ')})`,
  });
  return false;
}

/** Batches hide their members from every later step, so they are refused whatever the media type. */
function startsArray(body: Buffer): boolean {
  let at = 0;
  while (at < body.length && isWhite(body[at] ?? 0)) at += 1;
  return body[at] === OPEN_ARRAY;
}

function isJson(type: string | undefined): boolean {
  return type === JSON_TYPE || type?.split(';', 1)[0]?.trim().toLowerCase() === JSON_TYPE;
}

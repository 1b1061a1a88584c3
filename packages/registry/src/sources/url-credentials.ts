import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';

/** An http(s) address without its user information, and the header that carries it instead. */
export interface SplitUrl {
  readonly url: URL;
  /** `authorization` of RFC 7617, or nothing. */
  readonly headers: Readonly<Record<string, string>>;
}

/** Takes user name and password out of an address, so that neither reaches a message. Fails with `fetch/invalid-url`. */
export function splitCredentials(address: string): SplitUrl {
  const url = URL.canParse(address) ? new URL(address) : undefined;
  if (url === undefined || (url.protocol !== 'http:' && url.protocol !== 'https:')) {
    throw new SkepError('fetch/invalid-url', {
      message: `"${redactUrl(address)}" is not an http or https URL`,
    });
  }
  const { username, password } = url;
  url.username = '';
  url.password = '';
  return {
    url,
    headers: username === '' && password === '' ? {} : basic(decoded(username), decoded(password)),
  };
}

function basic(username: string, password: string): SplitUrl['headers'] {
  return { authorization: `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}` };
}

/** A `%` that begins no escape is taken as it is, as browsers do. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

import { createHash, createHmac } from 'node:crypto';

/** What a token asks for. */
export interface ReadToken {
  readonly host: string;
  readonly user: string | null;
  readonly action: string | null;
  readonly accessKey: string | undefined;
  readonly region: string;
  readonly service: string;
  /** Of temporary credentials. */
  readonly session: string | null;
  /** Milliseconds since the epoch. */
  readonly issued: number;
  readonly expires: number;
  /** Whether this secret key made the signature. */
  readonly isSigned: boolean;
}

/**
 * Reads a token as the database's side would: a URL without its scheme, presigned with Signature Version 4 (AWS IAM User
 * Guide, "Create a signed AWS API request", query string). Computed by itself, so that it can judge whoever signed.
 */
export function readToken(token: string, secretKey: string): ReadToken {
  const url = new URL(`https://${token}`);
  const query = url.searchParams;
  const [accessKey, day = '', region = '', service = '', ending = ''] = (
    query.get('X-Amz-Credential') ?? ''
  ).split('/');
  const date = query.get('X-Amz-Date') ?? '';
  const scope = `${day}/${region}/${service}/${ending}`;
  const toSign = ['AWS4-HMAC-SHA256', date, scope, sha256(canonicalRequest(url))].join('\n');
  const key = [day, region, service, 'aws4_request'].reduce<string | Buffer>(hmac, `AWS4${secretKey}`);
  const issued = date.replace(/^(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z$/, '$1-$2-$3T$4:$5:$6Z');
  return {
    host: url.host,
    user: query.get('DBUser'),
    action: query.get('Action'),
    accessKey,
    region,
    service,
    session: query.get('X-Amz-Security-Token'),
    issued: Date.parse(issued),
    expires: Date.parse(issued) + 1000 * Number(query.get('X-Amz-Expires')),
    isSigned: hmac(key, toSign).toString('hex') === query.get('X-Amz-Signature'),
  };
}

function canonicalRequest({ host, pathname, searchParams }: URL): string {
  const query = [...searchParams]
    .filter(([name]) => name !== 'X-Amz-Signature')
    .map(([name, value]) => `${encoded(name)}=${encoded(value)}`)
    .toSorted()
    .join('&');
  return ['GET', pathname, query, `host:${host}`, '', 'host', sha256('')].join('\n');
}

function encoded(text: string): string {
  return encodeURIComponent(text).replaceAll(
    /[!'()*]/g,
    (one) => `%${one.charCodeAt(0).toString(16).toUpperCase()}`,
  );
}

function sha256(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

function hmac(key: string | Buffer, text: string): Buffer {
  return createHmac('sha256', key).update(text).digest();
}

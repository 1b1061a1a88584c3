import { once } from 'node:events';
import { request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { connect, isIP, type Socket } from 'node:net';
import { SkepError } from '../errors/skep-error.ts';

/** Addresses of forward proxies, `http:`, `https:` or `socks5:`; empty for none. */
export interface ForwardProxies {
  readonly httpProxy: string;
  readonly httpsProxy: string;
  /** As in NO_PROXY. */
  readonly noProxy: string;
}

/** The proxy for `url`; that for http serves https too where it has none. */
export function proxyFor(url: URL, proxies: Partial<ForwardProxies>): URL | undefined {
  const { httpProxy = '', httpsProxy = '', noProxy = '' } = proxies;
  const set = url.protocol === 'https:' && httpsProxy !== '' ? httpsProxy : httpProxy;
  if (set === '' || isExempt(url, noProxy)) return undefined;
  if (URL.canParse(set)) return new URL(set);
  throw new SkepError('fetch/unreachable', { message: 'the address of the forward proxy is no URL' });
}

/** A name exempts its subdomains, with or without a dot or `*.` before it; a port only itself. */
function isExempt(url: URL, noProxy: string): boolean {
  const port = url.port === '' ? (url.protocol === 'https:' ? '443' : '80') : url.port;
  return noProxy
    .toLowerCase()
    .split(/[,\s]+/)
    .some((entry) => {
      const [, name = entry, only] = /^(.+):(\d+)$/.exec(entry) ?? [];
      const host = name.replace(/^\*?\./, '');
      if (entry === '' || (only !== undefined && only !== port)) return false;
      return noProxy === '*' || url.hostname === host || url.hostname.endsWith(`.${host}`);
    });
}

interface TunnelOptions {
  /** What the proxy itself is trusted by, PEM. */
  readonly ca?: string[];
  readonly timeoutMs: number;
}

interface Target {
  readonly host: string;
  readonly port: number;
}

/** A connection to `to` through `proxy`. Fails with `fetch/unreachable`, or as sockets do. */
export function openTunnel(proxy: URL, to: Target, options: TunnelOptions): Promise<Socket> {
  return /^socks5?:$/.test(proxy.protocol)
    ? openSocksTunnel(proxy, to, options)
    : openHttpTunnel(proxy, to, options);
}

/** RFC 9110 §9.3.6. */
function openHttpTunnel(proxy: URL, { host, port }: Target, options: TunnelOptions): Promise<Socket> {
  const authority = `${isIP(host) === 6 ? `[${host}]` : host}:${port}`;
  const { user, password } = loginOf(proxy);
  const login = Buffer.from(`${user}:${password}`).toString('base64');
  const send = proxy.protocol === 'https:' ? httpsRequest : httpRequest;
  return new Promise((resolve, reject) => {
    const request = send({
      protocol: proxy.protocol,
      hostname: bare(proxy.hostname),
      port: proxy.port,
      method: 'CONNECT',
      path: authority,
      headers: { host: authority, ...(user === '' ? {} : { 'proxy-authorization': `Basic ${login}` }) },
      agent: false,
      ...(options.ca === undefined ? {} : { ca: options.ca }),
    });
    // For all of the answer, however it drips in.
    const late = (): void => void request.destroy(refusal('did not answer in time'));
    const timer = setTimeout(late, options.timeoutMs);
    request.on('error', reject).once('close', () => clearTimeout(timer));
    request.on('connect', ({ statusCode = 0 }, socket: Socket) => {
      clearTimeout(timer);
      if (statusCode >= 200 && statusCode < 300) return resolve(socket);
      socket.on('error', () => undefined).destroy();
      reject(refusal(`refused with status ${statusCode}`));
    });
    request.on('response', (response) => {
      response.destroy();
      reject(refusal(`refused with status ${response.statusCode ?? ''}`));
    });
    request.end();
  });
}

/** RFC 1928, with the login of RFC 1929. The proxy resolves the name. */
async function openSocksTunnel(proxy: URL, to: Target, { timeoutMs }: TunnelOptions): Promise<Socket> {
  const signal = AbortSignal.timeout(timeoutMs);
  const socket = connect({ host: bare(proxy.hostname), port: Number(proxy.port || 1080) });
  const ask = async (bytes: Uint8Array, length: number): Promise<Buffer> => {
    socket.write(bytes);
    return readExactly(socket, length, signal);
  };
  try {
    const { user, password } = loginOf(proxy);
    const methods = user === '' ? [0] : [0, 2];
    const [version, method = 255] = await ask(Buffer.from([5, methods.length, ...methods]), 2);
    if (version !== 5 || !methods.includes(method)) throw refusal('refused the login');
    const login = Buffer.concat([Buffer.from([1]), sized(user), sized(password)]);
    if (method === 2 && (await ask(login, 2))[1] !== 0) throw refusal('refused the login');
    const port = Buffer.from([to.port >> 8, to.port & 255]);
    const wanted = Buffer.concat([Buffer.from([5, 1, 0, 3]), sized(to.host), port]);
    const [, reply, , kind, first = 0] = await ask(wanted, 5);
    if (reply !== 0) throw refusal(`refused with reply ${reply ?? ''}`);
    // What is left of the address it connected from, of which one byte is read, and its port.
    await readExactly(socket, (kind === 3 ? first : kind === 4 ? 15 : 3) + 2, signal);
    return socket;
  } catch (error) {
    socket.on('error', () => undefined).destroy();
    throw error;
  }
}

/** Takes no byte more, because what follows is for whoever gets the connection. */
async function readExactly(socket: Socket, length: number, signal: AbortSignal): Promise<Buffer> {
  for (;;) {
    const bytes = socket.read(length) as Buffer | null;
    if (bytes?.length === length) return bytes;
    if (bytes !== null || socket.readableEnded) throw refusal('ended the connection');
    await once(socket, 'readable', { signal });
  }
}

function sized(text: string): Buffer {
  const bytes = Buffer.from(text);
  // The length is one byte: the proxy would take the rest of a longer name for a port and a request.
  if (bytes.length > 255) throw refusal('takes no name or login of more than 255 bytes');
  return Buffer.concat([Buffer.from([bytes.length]), bytes]);
}

function loginOf({ username, password }: URL): { user: string; password: string } {
  return { user: decodeURIComponent(username), password: decodeURIComponent(password) };
}

/** Sockets take IPv6 addresses without brackets. */
export function bare(hostname: string): string {
  return hostname.replace(/^\[|\]$/g, '');
}

function refusal(what: string): SkepError {
  return new SkepError('fetch/unreachable', { message: `the forward proxy ${what}` });
}

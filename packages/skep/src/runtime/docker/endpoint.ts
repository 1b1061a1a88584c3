import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Where a Docker-compatible engine listens. */
export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/** As `DOCKER_HOST` spells it, for messages. */
export function endpointText(endpoint: Endpoint): string {
  return endpoint.kind === 'unix' ? `unix://${endpoint.path}` : `tcp://${endpoint.host}:${endpoint.port}`;
}

/** Reads a `DOCKER_HOST` or context address. Throws `runtime/unavailable` for the kinds Skep cannot speak. */
export function parseEndpoint(text: string): Endpoint {
  const unix = /^unix:\/\/(\/.+)$/.exec(text)?.[1];
  if (unix !== undefined) return { kind: 'unix', path: unix };
  const tcp = /^(?:tcp|http):\/\/(?:\[([0-9a-fA-F:]+)\]|([^/:@]+)):(\d{1,5})\/?$/.exec(text);
  const host = tcp?.[1] ?? tcp?.[2];
  if (tcp && host !== undefined) return { kind: 'tcp', host, port: Number(tcp[3]) };
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1] ?? '';
  throw new SkepError('runtime/unavailable', {
    message: `engine address "${withoutLogin(text)}" cannot be used: ${REFUSED[scheme] ?? 'it is neither unix:///path nor tcp://host:port'}`,
    hint: 'give a local socket as unix:///path/to/docker.sock',
  });
}

const REFUSED: Readonly<Record<string, string>> = {
  ssh: 'ssh connections are not supported, forward the socket to a local one',
  npipe: 'named pipes are not supported yet',
  https: 'TLS connections are not supported yet',
};

const withoutLogin = (text: string) => text.replace(/\/\/[^/@]*@/, '//…@');

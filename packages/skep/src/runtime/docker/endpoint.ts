import type { Duplex } from 'node:stream';
import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Where a Docker-compatible engine listens. */
export type Endpoint =
  | { readonly kind: 'unix'; readonly path: string }
  | {
      readonly kind: 'tcp';
      readonly host: string;
      readonly port: number;
      /** Present: TLS alone is spoken there. Opens a connection, which ends with an error where its engine is not the right one. */
      readonly secure?: () => Duplex;
    };

/** As `DOCKER_HOST` spells it, for messages and to be found again; TLS is told apart as `https`. */
export function endpointText(endpoint: Endpoint): string {
  if (endpoint.kind === 'unix') return `unix://${endpoint.path}`;
  const host = endpoint.host.includes(':') ? `[${endpoint.host}]` : endpoint.host;
  return `${endpoint.secure ? 'https' : 'tcp'}://${host}:${endpoint.port}`;
}

/**
 * Reads a `DOCKER_HOST` or context address; `isSecure` where it says itself that TLS is spoken. Throws
 * `runtime/unavailable` for the kinds Skep cannot speak.
 */
export function parseEndpoint(text: string): { readonly endpoint: Endpoint; readonly isSecure: boolean } {
  const unix = /^unix:\/\/(\/.+)$/.exec(text)?.[1];
  if (unix !== undefined) return { endpoint: { kind: 'unix', path: unix }, isSecure: false };
  const tcp = /^(tcp|https?):\/\/(?:\[([0-9a-fA-F:]+)\]|([^/:@]+)):(\d{1,5})\/?$/.exec(text);
  const host = tcp?.[2] ?? tcp?.[3];
  if (tcp && host !== undefined)
    return { endpoint: { kind: 'tcp', host, port: Number(tcp[4]) }, isSecure: tcp[1] === 'https' };
  const scheme = /^([a-z]+):\/\//.exec(text)?.[1] ?? '';
  const [why, hint] = REFUSED[scheme] ?? [
    'it is neither unix:///path nor tcp://host:port',
    'give a local socket as unix:///path/to/docker.sock',
  ];
  throw new SkepError('runtime/unavailable', {
    message: `engine address "${withoutLogin(text)}" cannot be used: ${why}`,
    hint,
  });
}

const REFUSED: Readonly<Record<string, readonly [why: string, hint: string]>> = {
  ssh: [
    'ssh connections are not supported',
    'forward its socket, and name that: ssh -nNT -L /tmp/engine.sock:/var/run/docker.sock USER@HOST, then DOCKER_HOST=unix:///tmp/engine.sock',
  ],
  npipe: ['named pipes are not supported yet', 'give a local socket as unix:///path/to/docker.sock'],
};

const withoutLogin = (text: string) => text.replace(/\/\/[^/@]*@/, '//…@');

import { isIPv4, isIPv6 } from 'node:net';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';

const MAX_PORT = 65_535;

// RFC 1123 §2.1: letters, digits, dashes and dots; an IPv4 address is one too.
const HOST = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

/** The IP address that a text is, as URLs write it and without their brackets; undefined for a name, and for one of one network card. */
export function addressIn(text: string): string | undefined {
  if (isIPv4(text)) return text;
  const bare = text.replace(/^\[(.*)\]$/su, '$1');
  return isIPv6(bare) ? URL.parse(`http://[${bare}]`)?.hostname.slice(1, -1) : undefined;
}

/** True when a proxy can forward to `http://<text>:<port>`. */
export function isTargetHost(text: string): boolean {
  return HOST.test(text) && URL.canParse(`http://${text}:1`);
}

/** True for a path that can stand before those of a proxy. */
export function isEndpointPrefix(text: string): boolean {
  const segments = text.split('/');
  return (
    /^\/(?!\/)[\w!$%&'()*+,./:;=@~-]{0,1023}$/.test(text) &&
    !segments.includes('.') &&
    !segments.includes('..')
  );
}

/** True for `hostPort:containerPort` or a container port alone, each from 1 to 65535. */
export function isPortMapping(text: string): boolean {
  const ports = text.split(':');
  return ports.length <= 2 && ports.every((port) => /^\d{1,5}$/.test(port) && inRange(Number(port)));
}

const inRange = (port: number): boolean => port >= 1 && port <= MAX_PORT;

/** How clients reach the proxy and the proxy reaches the server. */
export const transportSettings = settingsOf({ group: 'Transport and networking' }, [
  flag('choice', 'transport', 'What the server speaks', {
    placeholder: 'transport',
    key: 'transport',
    stored: shape.oneOf('stdio', 'sse', 'streamable-http'),
    choices: ['stdio', 'streamable-http', 'sse'],
    defaultText: "the catalogue's choice, else told from the server",
  }),
  flag('choice', 'proxy-mode', 'What the proxy speaks in front of a stdio server; sse is deprecated', {
    placeholder: 'mode',
    key: 'proxy_mode',
    // Another tool's word for "as the transport says" is no word at all.
    stored: shape.withDefault(shape.oneOf('streamable-http', 'sse', ''), ''),
    choices: ['streamable-http', 'sse'],
    default: 'streamable-http',
  }),
  flag('int', 'proxy-port', 'Port the proxy listens on; 0 picks a free one', {
    key: 'port',
    stored: shape.withDefault(shape.wholeNumber(0, MAX_PORT), 0),
    placeholder: 'port',
    min: 0,
    max: MAX_PORT,
  }),
  flag('string', 'host', 'Address or host name the proxy listens on', {
    placeholder: 'host',
    key: 'host',
    stored: shape.withDefault(
      shape.textThat((host) => addressIn(host) === host, 'is not an IP address as URLs have it'),
      '127.0.0.1',
    ),
    default: '127.0.0.1',
  }),
  flag('string', 'target-host', 'Host the proxy forwards to (HTTP servers only)', {
    placeholder: 'host',
    key: 'target_host',
    // Other tools write an empty text for "not given".
    stored: shape.optional(shape.textThat((host) => host === '' || isTargetHost(host), 'is not a host name')),
    default: '127.0.0.1',
  }),
  flag('int', 'target-port', 'Port the container exposes (HTTP servers only)', {
    key: 'target_port',
    stored: shape.optional(shape.wholeNumber(0, MAX_PORT)),
    placeholder: 'port',
    min: 1,
    max: MAX_PORT,
  }),
  flag('list', 'publish', 'Publish a port of the container to the host; repeatable', {
    short: 'p',
    key: 'publish',
    stored: shape.orEmpty(shape.listOf(shape.textThat(isPortMapping, 'is not hostPort:containerPort')), []),
    placeholder: 'hostPort:containerPort',
  }),
  flag('string', 'network', 'Network of the container: none, bridge, host or a network by name', {
    placeholder: 'mode',
    defaultText: 'as the permission profile says',
  }),
  flag('bool', 'isolate-network', 'Allow only the connections of the permission profile', {
    key: 'isolate_network',
    sparse: true,
    default: false,
  }),
  flag(
    'bool',
    'allow-runtime-gateway',
    "With --isolate-network, allow the container engine's gateway addresses",
    {
      key: 'allow_runtime_gateway',
      sparse: true,
      alias: 'allow_docker_gateway',
      default: false,
    },
  ),
  flag('string', 'endpoint-prefix', 'Path put before SSE endpoint URLs', {
    key: 'endpoint_prefix',
    // Other tools write an empty text for "not given".
    stored: shape.optional(
      shape.textThat((path) => path === '' || isEndpointPrefix(path), 'is not a path that begins with "/"'),
    ),
    placeholder: '/prefix',
  }),
  flag('string', 'session-redis', 'Redis in which replicas of this proxy share sessions', {
    placeholder: 'redis[s]://host:port/db',
  }),
  flag('string', 'session-redis-key-prefix', 'What the keys of sessions in Redis begin with', {
    placeholder: 'prefix',
    defaultText: 'skep:',
  }),
  flag('path', 'session-redis-password-file', 'File with the password of Redis', { placeholder: 'file' }),
  flag('bool', 'trust-proxy-headers', 'Trust X-Forwarded-Proto, -Host, -Port and -Prefix', {
    key: 'trust_proxy_headers',
    default: false,
  }),
]);

import { isIPv4 } from 'node:net';
import { settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';

const MAX_PORT = 65_535;

// RFC 1123 §2.1: letters, digits, dashes and dots; an IPv4 address is one too.
const HOST = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

/** True when a proxy can forward to `http://<text>:<port>`. */
export function isTargetHost(text: string): boolean {
  return HOST.test(text) && URL.canParse(`http://${text}:1`);
}

/** True for `hostPort:containerPort` or a container port alone, each from 1 to 65535. */
export function isPortMapping(text: string): boolean {
  const ports = text.split(':');
  return ports.length <= 2 && ports.every((port) => /^\d{1,5}$/.test(port) && inRange(Number(port)));
}

const inRange = (port: number): boolean => port >= 1 && port <= MAX_PORT;

/** How clients reach the proxy and the proxy reaches the server. */
export const transportSettings = settingsOf('Transport and networking', [
  {
    kind: 'choice',
    flag: 'transport',
    placeholder: 'transport',
    key: 'transport',
    stored: shape.oneOf('stdio', 'sse', 'streamable-http'),
    brief: 'What the server speaks',
    choices: ['stdio', 'streamable-http', 'sse'],
    notYetValues: ['sse'],
    defaultText: "the catalogue's choice, else told from the server",
  },
  {
    kind: 'choice',
    flag: 'proxy-mode',
    placeholder: 'mode',
    key: 'proxy_mode',
    // Another tool's word for "as the transport says" is no word at all.
    stored: shape.withDefault(shape.oneOf('streamable-http', 'sse', ''), ''),
    brief: 'What the proxy speaks in front of a stdio server; sse is deprecated',
    choices: ['streamable-http', 'sse'],
    notYetValues: ['sse'],
    default: 'streamable-http',
  },
  {
    kind: 'int',
    flag: 'proxy-port',
    key: 'port',
    stored: shape.withDefault(shape.wholeNumber(0, MAX_PORT), 0),
    brief: 'Port the proxy listens on; 0 picks a free one',
    placeholder: 'port',
    min: 0,
    max: MAX_PORT,
  },
  {
    kind: 'string',
    flag: 'host',
    placeholder: 'host',
    key: 'host',
    stored: shape.withDefault(shape.textThat(isIPv4, 'is not an IPv4 address'), '127.0.0.1'),
    brief: 'Address or host name the proxy listens on',
    default: '127.0.0.1',
  },
  {
    kind: 'string',
    flag: 'target-host',
    placeholder: 'host',
    key: 'target_host',
    // Other tools write an empty text for "not given".
    stored: shape.optional(shape.textThat((host) => host === '' || isTargetHost(host), 'is not a host name')),
    brief: 'Host the proxy forwards to (HTTP servers only)',
    default: '127.0.0.1',
  },
  {
    kind: 'int',
    flag: 'target-port',
    key: 'target_port',
    stored: shape.optional(shape.wholeNumber(0, MAX_PORT)),
    brief: 'Port the container exposes (HTTP servers only)',
    placeholder: 'port',
    min: 1,
    max: MAX_PORT,
  },
  {
    kind: 'list',
    flag: 'publish',
    short: 'p',
    key: 'publish',
    stored: shape.orEmpty(shape.listOf(shape.textThat(isPortMapping, 'is not hostPort:containerPort')), []),
    brief: 'Publish a port of the container to the host; repeatable',
    placeholder: 'hostPort:containerPort',
  },
  {
    kind: 'string',
    flag: 'network',
    brief: 'Network of the container: none, bridge, host or a network by name',
    placeholder: 'mode',
    defaultText: 'as the permission profile says',
  },
  {
    kind: 'bool',
    flag: 'isolate-network',
    key: 'isolate_network',
    brief: 'Allow only the connections of the permission profile',
    default: false,
    notYet: true,
  },
  {
    kind: 'bool',
    flag: 'allow-runtime-gateway',
    key: 'allow_runtime_gateway',
    alias: 'allow_docker_gateway',
    harmless: true,
    brief: "With --isolate-network, allow the container engine's gateway addresses",
    default: false,
    notYet: true,
  },
  {
    kind: 'string',
    flag: 'endpoint-prefix',
    key: 'endpoint_prefix',
    brief: 'Path put before SSE endpoint URLs',
    placeholder: '/prefix',
    notYet: true,
  },
  {
    kind: 'bool',
    flag: 'trust-proxy-headers',
    key: 'trust_proxy_headers',
    brief: 'Trust X-Forwarded-Proto, -Host, -Port and -Prefix',
    default: false,
  },
]);

import { isIPv4 } from 'node:net';
import { defineSettings } from '@skep/core/settings/define-settings.ts';
import {
  listOf,
  oneOf,
  optional,
  orEmpty,
  textThat,
  wholeNumber,
  withDefault,
} from '@skep/core/settings/shape.ts';
import { isPortMapping } from './port-mapping.ts';
import { isTargetHost } from './target-host.ts';

const group = 'Transport and networking';
/** What timers can be set to: 24 days. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const MAX_PORT = 65_535;

/** How long a call may take; a variable only. */
export const requestTimeoutSettings = defineSettings([
  {
    name: 'requestTimeout',
    kind: 'duration',
    env: 'SKEP_PROXY_REQUEST_TIMEOUT',
    key: 'request_timeout',
    group,
    brief: 'How long a call may go without an answer or progress',
    defaultText: '1m0s',
    min: 1,
    max: LONGEST_TIMER_MS,
  },
]);

/** How clients reach the proxy and the proxy reaches the server. */
export const transportSettings = defineSettings([
  {
    name: 'transport',
    kind: 'choice',
    flag: 'transport',
    placeholder: 'transport',
    key: 'transport',
    stored: oneOf('stdio', 'sse', 'streamable-http'),
    group,
    brief: 'What the server speaks',
    choices: ['stdio', 'streamable-http', 'sse'],
    notYetValues: ['sse'],
    defaultText: "the catalogue's choice, else told from the server",
  },
  {
    name: 'proxyMode',
    kind: 'choice',
    flag: 'proxy-mode',
    placeholder: 'mode',
    key: 'proxy_mode',
    // Another tool's word for "as the transport says" is no word at all.
    stored: withDefault(oneOf('streamable-http', 'sse', ''), ''),
    group,
    brief: 'What the proxy speaks in front of a stdio server; sse is deprecated',
    choices: ['streamable-http', 'sse'],
    notYetValues: ['sse'],
    default: 'streamable-http',
  },
  {
    name: 'proxyPort',
    kind: 'int',
    flag: 'proxy-port',
    key: 'port',
    stored: withDefault(wholeNumber(0, MAX_PORT), 0),
    group,
    brief: 'Port the proxy listens on; 0 picks a free one',
    placeholder: 'port',
    min: 0,
    max: MAX_PORT,
  },
  {
    name: 'host',
    kind: 'string',
    flag: 'host',
    placeholder: 'host',
    key: 'host',
    stored: withDefault(textThat(isIPv4, 'is not an IPv4 address'), '127.0.0.1'),
    group,
    brief: 'Address or host name the proxy listens on',
    default: '127.0.0.1',
  },
  {
    name: 'targetHost',
    kind: 'string',
    flag: 'target-host',
    placeholder: 'host',
    key: 'target_host',
    // Other tools write an empty text for "not given".
    stored: optional(textThat((host) => host === '' || isTargetHost(host), 'is not a host name')),
    group,
    brief: 'Host the proxy forwards to (HTTP servers only)',
    default: '127.0.0.1',
  },
  {
    name: 'targetPort',
    kind: 'int',
    flag: 'target-port',
    key: 'target_port',
    stored: optional(wholeNumber(0, MAX_PORT)),
    group,
    brief: 'Port the container exposes (HTTP servers only)',
    placeholder: 'port',
    min: 1,
    max: MAX_PORT,
  },
  {
    name: 'publish',
    kind: 'list',
    flag: 'publish',
    short: 'p',
    key: 'publish',
    stored: orEmpty(listOf(textThat(isPortMapping, 'is not hostPort:containerPort')), []),
    group,
    brief: 'Publish a port of the container to the host; repeatable',
    placeholder: 'hostPort:containerPort',
  },
  {
    name: 'network',
    kind: 'string',
    flag: 'network',
    group,
    brief: 'Network of the container: none, bridge, host or a network by name',
    placeholder: 'mode',
    defaultText: 'as the permission profile says',
  },
  {
    name: 'isolateNetwork',
    kind: 'bool',
    flag: 'isolate-network',
    key: 'isolate_network',
    group,
    brief: 'Allow only the connections of the permission profile',
    default: false,
    notYet: true,
  },
  {
    name: 'allowRuntimeGateway',
    kind: 'bool',
    flag: 'allow-runtime-gateway',
    key: 'allow_runtime_gateway',
    alias: 'allow_docker_gateway',
    harmless: true,
    group,
    brief: "With --isolate-network, allow the container engine's gateway addresses",
    default: false,
    notYet: true,
  },
  {
    name: 'endpointPrefix',
    kind: 'string',
    flag: 'endpoint-prefix',
    key: 'endpoint_prefix',
    group,
    brief: 'Path put before SSE endpoint URLs',
    placeholder: '/prefix',
    notYet: true,
  },
  {
    name: 'trustProxyHeaders',
    kind: 'bool',
    flag: 'trust-proxy-headers',
    key: 'trust_proxy_headers',
    group,
    brief: 'Trust X-Forwarded-Proto, -Host, -Port and -Prefix',
    default: false,
  },
]);

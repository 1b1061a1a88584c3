import { MAX_TIMER_MS } from '@skep/core/time/clock.ts';
import { durationText, optional } from '@skep/core/settings/shape.ts';
import { settingsOf, type Values } from '@skep/core/settings/define-settings.ts';

const MEGABYTE = 1024 * 1024;
const ttl = optional(durationText());

/** How long the proxy waits and how much it takes. Bounds that guard its memory are constants, where they are used. */
export const proxySettings = settingsOf({ group: 'Limits of the proxy' }, [
  {
    name: 'requestTimeoutMs',
    kind: 'duration',
    env: 'SKEP_PROXY_REQUEST_TIMEOUT',
    key: 'request_timeout',
    sparse: true,
    brief: 'How long a call may go without an answer or progress',
    default: 60_000,
    min: 1,
    max: MAX_TIMER_MS,
  },
  {
    name: 'sessionTtlMs',
    kind: 'duration',
    env: 'SKEP_PROXY_SESSION_TTL',
    key: 'session_ttl',
    // Other tools write an empty text for "not given".
    stored: (value, fail) => (value === '' || value === null ? undefined : ttl(value, fail)),
    brief: 'How long a session lasts without calls and streams',
    default: 2 * 60 * 60_000,
    min: 1,
    max: MAX_TIMER_MS,
  },
  {
    name: 'bodyLimitBytes',
    kind: 'int',
    env: 'SKEP_PROXY_MAX_BODY_BYTES',
    key: 'max_body_bytes',
    sparse: true,
    brief: 'Bytes that a request may have',
    placeholder: 'bytes',
    default: 8 * MEGABYTE,
    min: 1_024,
    // What all proxies of a process hold of unfinished bodies together.
    max: 64 * MEGABYTE,
  },
  {
    name: 'graceMs',
    kind: 'duration',
    env: 'SKEP_PROXY_STOP_GRACE',
    key: 'stop_grace',
    sparse: true,
    brief: 'How long calls in flight may hold up a stop',
    default: 2_000,
    min: 1,
    max: 60_000,
  },
  {
    name: 'healthIntervalMs',
    kind: 'duration',
    env: 'SKEP_HEALTH_CHECK_INTERVAL',
    key: 'health_check_interval',
    sparse: true,
    brief: 'How often a server that speaks HTTP is looked at',
    default: 10_000,
    min: 1,
    max: MAX_TIMER_MS,
  },
  {
    name: 'healthTimeoutMs',
    kind: 'duration',
    env: 'SKEP_HEALTH_CHECK_PING_TIMEOUT',
    key: 'health_check_timeout',
    sparse: true,
    brief: 'How long one look may take',
    default: 5_000,
    min: 1,
    max: MAX_TIMER_MS,
  },
  {
    name: 'healthRetryMs',
    kind: 'duration',
    env: 'SKEP_HEALTH_CHECK_RETRY_DELAY',
    key: 'health_check_retry_delay',
    sparse: true,
    brief: 'Before it is looked at again after a failure',
    default: 5_000,
    min: 1,
    max: MAX_TIMER_MS,
  },
  {
    name: 'healthThreshold',
    kind: 'int',
    env: 'SKEP_HEALTH_CHECK_FAILURE_THRESHOLD',
    key: 'health_check_failure_threshold',
    sparse: true,
    brief: 'Failures in a row after which it counts as unhealthy',
    placeholder: 'count',
    default: 5,
    min: 1,
    max: 10_000,
  },
  {
    name: 'remoteHealthChecks',
    kind: 'bool',
    env: 'SKEP_REMOTE_HEALTHCHECKS',
    key: 'remote_health_checks',
    sparse: true,
    brief: 'Look at servers elsewhere as well',
    default: false,
  },
]);

export type ProxyLimits = Values<typeof proxySettings>;

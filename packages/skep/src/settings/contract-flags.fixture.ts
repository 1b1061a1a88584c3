/**
 * The flags of `skep run` as the contract lists them, typed once by hand: name, type, default. The parity test holds the
 * settings table against this list, in both directions.
 */
export type ContractType = 'string' | 'int' | 'float' | 'bool' | 'duration' | 'stringArray' | 'strings';

export interface ContractFlag {
  readonly flag: string;
  readonly short?: string;
  readonly type: ContractType;
  /** As the contract prints it; absent where its column is empty or describes a computed value. */
  readonly default?: string;
}

export const contractFlags: readonly ContractFlag[] = [
  // identity and lifecycle
  { flag: 'name', type: 'string' },
  { flag: 'group', type: 'string', default: 'default' },
  { flag: 'from-config', type: 'string' },
  { flag: 'label', short: 'l', type: 'stringArray' },
  { flag: 'foreground', short: 'f', type: 'bool', default: 'false' },
  { flag: 'help', short: 'h', type: 'bool' },
  // transport and networking
  { flag: 'transport', type: 'string' },
  { flag: 'proxy-mode', type: 'string', default: 'streamable-http' },
  { flag: 'proxy-port', type: 'int' },
  { flag: 'host', type: 'string', default: '127.0.0.1' },
  { flag: 'target-host', type: 'string', default: '127.0.0.1' },
  { flag: 'target-port', type: 'int' },
  { flag: 'publish', short: 'p', type: 'stringArray' },
  { flag: 'network', type: 'string' },
  { flag: 'isolate-network', type: 'bool', default: 'false' },
  { flag: 'allow-runtime-gateway', type: 'bool', default: 'false' },
  { flag: 'endpoint-prefix', type: 'string' },
  { flag: 'trust-proxy-headers', type: 'bool', default: 'false' },
  // environment, storage, permissions, build
  { flag: 'env', short: 'e', type: 'stringArray' },
  { flag: 'env-file', type: 'string' },
  { flag: 'env-file-dir', type: 'string' },
  { flag: 'secret', type: 'stringArray' },
  { flag: 'volume', short: 'v', type: 'stringArray' },
  { flag: 'ignore-globally', type: 'bool', default: 'true' },
  { flag: 'print-resolved-overlays', type: 'bool', default: 'false' },
  { flag: 'permission-profile', type: 'string' },
  { flag: 'image-verification', type: 'string', default: 'warn' },
  { flag: 'ca-cert', type: 'string' },
  { flag: 'skep-ca-bundle', type: 'string' },
  { flag: 'runtime-image', type: 'string' },
  { flag: 'runtime-add-package', type: 'stringArray' },
  // tools, authorization, audit, webhooks
  { flag: 'tools', type: 'stringArray' },
  { flag: 'tools-override', type: 'string' },
  { flag: 'authz-config', type: 'string' },
  { flag: 'audit-config', type: 'string' },
  { flag: 'enable-audit', type: 'bool', default: 'false' },
  { flag: 'webhook-config', type: 'stringArray' },
  // telemetry
  { flag: 'otel-endpoint', type: 'string' },
  { flag: 'otel-service-name', type: 'string' },
  { flag: 'otel-headers', type: 'stringArray' },
  { flag: 'otel-insecure', type: 'bool', default: 'false' },
  { flag: 'otel-tracing-enabled', type: 'bool', default: 'true' },
  { flag: 'otel-metrics-enabled', type: 'bool', default: 'true' },
  { flag: 'otel-sampling-rate', type: 'float', default: '0.1' },
  { flag: 'otel-custom-attributes', type: 'string' },
  { flag: 'otel-env-vars', type: 'stringArray' },
  { flag: 'otel-enable-prometheus-metrics-path', type: 'bool', default: 'false' },
  { flag: 'otel-use-legacy-attributes', type: 'bool', default: 'true' },
  // inherited
  { flag: 'debug', type: 'bool' },
  // incoming requests (OIDC)
  { flag: 'oidc-issuer', type: 'string' },
  { flag: 'oidc-audience', type: 'string' },
  { flag: 'oidc-client-id', type: 'string' },
  { flag: 'oidc-client-secret', type: 'string' },
  { flag: 'oidc-introspection-url', type: 'string' },
  { flag: 'oidc-jwks-url', type: 'string' },
  { flag: 'oidc-scopes', type: 'strings' },
  { flag: 'oidc-insecure-allow-http', type: 'bool', default: 'false' },
  { flag: 'jwks-allow-private-ip', type: 'bool', default: 'false' },
  { flag: 'jwks-auth-token-file', type: 'string' },
  { flag: 'resource-url', type: 'string' },
  // outgoing authentication
  { flag: 'remote-auth', type: 'bool', default: 'false' },
  { flag: 'remote-auth-issuer', type: 'string' },
  { flag: 'remote-auth-authorize-url', type: 'string' },
  { flag: 'remote-auth-token-url', type: 'string' },
  { flag: 'remote-auth-client-id', type: 'string' },
  { flag: 'remote-auth-client-secret', type: 'string' },
  { flag: 'remote-auth-client-secret-file', type: 'string' },
  { flag: 'remote-auth-bearer-token', type: 'string' },
  { flag: 'remote-auth-bearer-token-file', type: 'string' },
  { flag: 'remote-auth-scopes', type: 'strings' },
  { flag: 'remote-auth-resource', type: 'string' },
  { flag: 'remote-auth-callback-port', type: 'int', default: '8666' },
  { flag: 'remote-auth-skip-browser', type: 'bool', default: 'false' },
  { flag: 'remote-auth-timeout', type: 'duration', default: '30s' },
  { flag: 'remote-forward-headers', type: 'stringArray' },
  { flag: 'remote-forward-headers-secret', type: 'stringArray' },
  // token exchange
  { flag: 'token-exchange-url', type: 'string' },
  { flag: 'token-exchange-client-id', type: 'string' },
  { flag: 'token-exchange-client-secret', type: 'string' },
  { flag: 'token-exchange-client-secret-file', type: 'string' },
  { flag: 'token-exchange-audience', type: 'string' },
  { flag: 'token-exchange-scopes', type: 'strings' },
  { flag: 'token-exchange-header-name', type: 'string' },
  { flag: 'token-exchange-subject-token-type', type: 'string', default: 'access_token' },
];

import { chooseDataPaths } from '../permissions/data-paths.ts';
import { declaredMounts } from '../permissions/profile.ts';
import { referenceTo, runConfigOf, type RunConfig } from '../run-config/run-config.ts';
import type { RuntimeInfo } from '../runtime/runtime.ts';
import { addressIn } from '../settings/transport.ts';
import { chooseTransport } from './choose-transport.ts';
import { withHardening } from './first-hardening.ts';
import type { Made } from './plan.ts';
import type { PlannedProxy, PlannedRun } from './planned-run.ts';
import type { MergedEnv } from './merge-env.ts';
import type { PlannedRemoteAuth } from './plan-remote-auth.ts';
import {
  EXCHANGE_CLIENT_SECRET,
  OIDC_CLIENT_SECRET,
  OTEL_HEADERS,
  REMOTE_BEARER_TOKEN,
  REMOTE_CLIENT_SECRET,
} from '../secrets/reference.ts';

/** The run config of a planned and prepared run. Fails when the image that is now there contradicts the plan. */
export async function buildRunConfig(planned: PlannedRun, made: Made, info: RuntimeInfo): Promise<RunConfig> {
  const { values, profile, resolved } = planned;
  const { port, merged, prepared } = made;
  const built = resolved.source.kind === 'package' ? resolved.source : undefined;
  const { transport, targetPort } = chooseTransport(planned, prepared.exposedPorts);
  const config = runConfigOf(values, {
    name: planned.name,
    ...proxyConfigOf(planned, { port, merged }),
    remote_auth_config: undefined,
    image: prepared.reference,
    image_is_ours: prepared.ours,
    package: built,
    package_version: prepared.version,
    // Images are not built, so what they would be built from is not kept.
    ...(built ? {} : { runtime_config: undefined }),
    cmd_args: planned.args,
    transport,
    // What speaks HTTP itself is not translated.
    proxy_mode: transport === 'stdio' ? values.proxyMode : transport,
    target_port: targetPort,
    target_host: targetPort === undefined ? undefined : values.targetHost,
    permission_profile: profile,
    data_paths: chooseDataPaths({
      isPackage: built !== undefined,
      declared: [...(resolved.plan?.volumes ?? []), ...(prepared.volumes ?? [])],
      mounts: declaredMounts(profile, '/'),
    }),
    runtime: referenceTo(info),
  });
  return values.learn ? config : withHardening(config, prepared);
}

/** A proxy, and what it signs in with where its server is elsewhere. */
interface Configured extends PlannedProxy {
  readonly remoteAuth?: Pick<PlannedRemoteAuth, 'clientSecret' | 'bearerToken'> | undefined;
}

/** What is decided of a proxy and its clients, wherever the server behind it runs. */
export function proxyConfigOf(
  {
    inputs,
    values,
    signIn,
    exchange,
    remoteAuth,
    tools,
    authz,
    webhooks,
    audit,
    scaling,
    telemetry,
  }: Configured,
  { port, merged }: Pick<Made, 'port' | 'merged'>,
) {
  // Clients may call the proxy by the name it was given; what is no name of ours is refused (DNS rebinding).
  const host = values.host.toLowerCase();
  const isName = addressIn(host) === undefined && host !== 'localhost';
  return {
    port,
    host: inputs.host,
    allowed_origins: isName ? [`http://${host}:${port}`] : undefined,
    ...signIn.config,
    ...exchange.config,
    ...tools,
    ...authz,
    ...webhooks,
    ...audit,
    ...scaling,
    ...telemetry.config,
    ...withProxySecrets(merged, { signIn, exchange, remoteAuth, telemetry, inputs }),
    container_labels: inputs.labels,
  };
}

/** Secrets of the proxy go where the server's secrets go; what `--secret` names for one counts before a value. */
function withProxySecrets(
  { env, secret }: MergedEnv,
  {
    signIn,
    exchange,
    remoteAuth,
    telemetry,
    inputs,
  }: Pick<Configured, 'signIn' | 'exchange' | 'remoteAuth' | 'telemetry' | 'inputs'>,
): Pick<RunConfig, 'env_vars' | 'secret_env'> {
  const given = {
    [OIDC_CLIENT_SECRET]: signIn.clientSecret,
    [EXCHANGE_CLIENT_SECRET]: exchange.clientSecret,
    [OTEL_HEADERS]: telemetry.headers,
    [REMOTE_CLIENT_SECRET]: remoteAuth?.clientSecret,
    [REMOTE_BEARER_TOKEN]: remoteAuth?.bearerToken,
  };
  const isNamed = (name: string): boolean => inputs.secrets.some(({ target }) => target === name);
  const values = Object.entries(given).flatMap(([name, value]) => {
    // Given as a variable of the server (-e, --env-file) it is a secret all the same.
    const found = value ?? env[name];
    return found === undefined || (value !== undefined && isNamed(name)) ? [] : [[name, found] as const];
  });
  return {
    env_vars: { ...env, ...Object.fromEntries(values) },
    secret_env: [...secret, ...values.map(([name]) => name)],
  };
}

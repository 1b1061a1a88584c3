import { isIPv4 } from 'node:net';
import { referenceTo } from '../run-config/run-config.ts';
import { withRequestTimeout } from '../run-config/request-timeout.ts';
import { SCHEMA_VERSION, type RunConfig } from '../run-config/run-config.ts';
import type { Prepared, RuntimeInfo } from '../runtime/runtime.ts';
import { chooseTransport } from './choose-transport.ts';
import type { MergedEnv } from './merge-env.ts';
import { checkReachable } from './plan-permissions.ts';
import type { PlannedRun } from './plan-run.ts';
import type { Resolved } from './resolve-target.ts';

export interface BuildInputs {
  readonly planned: PlannedRun;
  readonly name: string;
  readonly port: number;
  readonly merged: MergedEnv;
  readonly prepared: Prepared;
  /** The engine it will run on. */
  readonly info: RuntimeInfo;
}

/** The run config of a planned and prepared run. Fails when the image that is now there contradicts the plan. */
export function buildRunConfig({ planned, name, port, merged, prepared, info }: BuildInputs): RunConfig {
  const { request, inputs, resolved, profile, args } = planned;
  const { values } = request;
  const { source, plan } = resolved;
  const chosen = chooseTransport({
    flag: values.transport,
    catalogue: plan?.transport,
    source,
    exposedPorts: prepared.exposedPorts,
    targetPort: values.targetPort ?? plan?.targetPort,
  });
  checkReachable(profile, chosen.transport);
  return {
    schema_version: SCHEMA_VERSION,
    name,
    image: prepared.reference,
    ...(source.kind === 'package' ? { package: source } : {}),
    image_is_ours: prepared.ours,
    ...runtimeConfig(planned),
    ...originOf(resolved),
    cmd_args: args,
    transport: chosen.transport,
    proxy_mode: 'streamable-http',
    host: inputs.host,
    port,
    ...namedBy(values.host, port),
    ...(chosen.targetPort === undefined
      ? {}
      : { target_port: chosen.targetPort, target_host: values.targetHost }),
    publish: values.publish ?? [],
    ...(values.permissionProfile === undefined
      ? {}
      : { permission_profile_name_or_path: values.permissionProfile }),
    permission_profile: profile,
    ...(values.sandboxUser === undefined ? {} : { sandbox_user: values.sandboxUser }),
    env_vars: merged.env,
    secret_env: merged.secret,
    volumes: values.volume ?? [],
    ...(values.ignoreGlobally ? {} : { ignore_config: { load_global: false } }),
    container_labels: inputs.labels,
    group: values.group,
    debug: values.debug ?? false,
    ...withRequestTimeout(values.requestTimeout),
    ...(values.noCheck ? { no_check: true } : {}),
    trust_proxy_headers: values.trustProxyHeaders,
    runtime: referenceTo(info),
    rest: {},
  };
}

/** Clients may call the proxy by the name it was given; what is no name of ours is refused (DNS rebinding). */
function namedBy(host: string, port: number): Pick<RunConfig, 'allowed_origins'> {
  const isName = !isIPv4(host) && host.toLowerCase() !== 'localhost';
  return isName ? { allowed_origins: [`http://${host.toLowerCase()}:${String(port)}`] } : {};
}

/** Images are not built, so what they would be built from is not kept. */
function runtimeConfig({ request, resolved }: PlannedRun): Pick<RunConfig, 'runtime_config'> {
  const { runtimeImage, runtimeAddPackage } = request.values;
  const given = {
    ...(runtimeImage === undefined ? {} : { builder_image: runtimeImage }),
    ...(runtimeAddPackage === undefined ? {} : { additional_packages: runtimeAddPackage }),
  };
  const kept = resolved.source.kind === 'package' && Object.keys(given).length > 0;
  return kept ? { runtime_config: given } : {};
}

/** Where the server came from. A file of this machine says nothing elsewhere. */
function originOf({ entryName, catalog }: Resolved): Partial<RunConfig> {
  if (entryName === undefined) return {};
  return {
    registry_server_name: entryName,
    ...(catalog?.kind === 'API endpoint' ? { registry_api_url: withoutLogin(catalog.location) } : {}),
    ...(catalog?.kind === 'remote file' ? { registry_url: withoutLogin(catalog.location) } : {}),
  };
}

/** An exported file travels; what signs in to the catalogue does not. */
function withoutLogin(address: string): string {
  const url = new URL(address);
  if (url.username === '' && url.password === '') return address;
  url.username = '';
  url.password = '';
  return url.href;
}

import { isIPv4 } from 'node:net';
import { referenceTo, runConfigOf, type RunConfig } from '../run-config/run-config.ts';
import type { RuntimeInfo } from '../runtime/runtime.ts';
import { transportOf } from './choose-transport.ts';
import type { Made } from './plan.ts';
import type { PlannedRun } from './planned-run.ts';

export interface BuildInputs extends Made {
  readonly planned: PlannedRun;
  readonly name: string;
  /** The engine it will run on. */
  readonly info: RuntimeInfo;
}

/** The run config of a planned and prepared run. Fails when the image that is now there contradicts the plan. */
export function buildRunConfig({ planned, name, port, merged, prepared, info }: BuildInputs): RunConfig {
  const { request, inputs, resolved, profile, args } = planned;
  const { values } = request;
  const { source } = resolved;
  const { transport, targetPort } = transportOf(planned, prepared.exposedPorts);
  return runConfigOf(values, {
    name,
    port,
    host: inputs.host,
    image: prepared.reference,
    image_is_ours: prepared.ours,
    package: source.kind === 'package' ? source : undefined,
    // Images are not built, so what they would be built from is not kept.
    ...(source.kind === 'package' ? {} : { runtime_config: undefined }),
    cmd_args: args,
    transport,
    target_port: targetPort,
    target_host: targetPort === undefined ? undefined : values.targetHost,
    allowed_origins: namedBy(values.host, port),
    permission_profile: profile,
    env_vars: merged.env,
    secret_env: merged.secret,
    container_labels: inputs.labels,
    runtime: referenceTo(info),
  });
}

/** Clients may call the proxy by the name it was given; what is no name of ours is refused (DNS rebinding). */
function namedBy(host: string, port: number): readonly string[] | undefined {
  const isName = !isIPv4(host) && host.toLowerCase() !== 'localhost';
  return isName ? [`http://${host.toLowerCase()}:${port}`] : undefined;
}

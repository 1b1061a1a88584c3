import type { WorkloadSpec } from '../runtime.ts';
import { volumeMounts } from './data-volumes.ts';
import { MANAGED_LABEL, NAME_LABEL } from './labels.ts';

/** As much as Skep keeps of its own logs (supervisor/log-keeper.ts), in two files. `docker logs` reads them as one. */
const BOUNDED_LOG = { Type: 'json-file', Config: { 'max-size': '10m', 'max-file': '2' } };

export interface BodyContext {
  /** The id of the shared network, for workloads that are on it. */
  readonly sharedNetwork?: string | undefined;
  /** Podman has log drivers of its own, and journald bounds itself. */
  readonly podman: boolean;
}

/**
 * The body of `POST /containers/create` (docs/behaviour/run.md#containers): no capabilities, no new privileges, bounded
 * processes, an init that reaps and forwards signals, and no restart policy, because restarts are the supervisor's
 * decision alone.
 */
export function containerBody(spec: WorkloadSpec, { sharedNetwork, podman }: BodyContext): object {
  return {
    Image: spec.reference,
    ...(spec.args.length > 0 ? { Cmd: spec.args } : {}),
    // The engine keeps them, and shows them to whoever may use it: it has no other way to give them to a server.
    Env: Object.entries({ ...spec.secretEnv, ...spec.env }).map(([key, value]) => `${key}=${value}`),
    Labels: { ...spec.labels, [MANAGED_LABEL]: 'true', [NAME_LABEL]: spec.name },
    Tty: false,
    AttachStdin: spec.stdio,
    AttachStdout: spec.stdio,
    AttachStderr: spec.stdio,
    OpenStdin: spec.stdio,
    StdinOnce: false,
    ExposedPorts: Object.fromEntries(spec.ports.map((port) => [`${port.containerPort}/tcp`, {}])),
    HostConfig: {
      NetworkMode: sharedNetwork ?? spec.network,
      PortBindings: portBindings(spec),
      Mounts: [
        ...spec.mounts.map((mount) => ({
          Type: 'bind',
          Source: mount.source,
          Target: mount.target,
          ReadOnly: mount.readOnly,
        })),
        ...volumeMounts(spec),
      ],
      Privileged: spec.privileged,
      CapDrop: ['ALL'],
      // label:disable lets bind mounts work on hosts with SELinux.
      SecurityOpt: ['no-new-privileges', 'label:disable'],
      PidsLimit: 512,
      Init: true,
      RestartPolicy: { Name: 'no' },
      ...(podman ? {} : { LogConfig: BOUNDED_LOG }),
    },
    // Said a second time, because from the mode alone older engines keep the name, which need not be unique.
    ...(sharedNetwork === undefined
      ? {}
      : { NetworkingConfig: { EndpointsConfig: { [sharedNetwork]: { NetworkID: sharedNetwork } } } }),
  };
}

/** True for workloads on the network that Skep makes; the others name one of the engine's. */
export function sharesNetwork(spec: WorkloadSpec): boolean {
  return spec.network === 'bridge' || spec.network === '';
}

function portBindings(spec: WorkloadSpec): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of spec.ports) {
    (bindings[`${port.containerPort}/tcp`] ??= []).push({
      HostIp: port.hostIp,
      HostPort: String(port.hostPort),
    });
  }
  return bindings;
}

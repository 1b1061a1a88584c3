import type { PortBinding } from '../runtime.ts';

/** The member `ExposedPorts` of a container's body. */
export function exposedPorts(ports: readonly PortBinding[]): Readonly<Record<string, object>> {
  return Object.fromEntries(ports.map((port) => [`${port.containerPort}/tcp`, {}]));
}

/** The member `PortBindings` of its `HostConfig`: a port of the container may have several on the machine. */
export function portBindings(
  ports: readonly PortBinding[],
): Record<string, { HostIp: string; HostPort: string }[]> {
  const bindings: Record<string, { HostIp: string; HostPort: string }[]> = {};
  for (const port of ports) {
    (bindings[`${port.containerPort}/tcp`] ??= []).push({
      HostIp: port.hostIp,
      HostPort: String(port.hostPort),
    });
  }
  return bindings;
}

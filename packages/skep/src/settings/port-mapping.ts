/** True for `hostPort:containerPort` or a container port alone, each from 1 to 65535. */
export function isPortMapping(text: string): boolean {
  const ports = text.split(':');
  return ports.length <= 2 && ports.every((port) => /^\d{1,5}$/.test(port) && inRange(Number(port)));
}

const inRange = (port: number): boolean => port >= 1 && port <= 65_535;

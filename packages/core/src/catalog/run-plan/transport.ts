import type { ServerPackage } from '../server-json.ts';
import { fill, requirementOf } from './requirement.ts';

export type Transport = 'stdio' | 'sse' | 'streamable-http';

/** How a packaged server is spoken to. `port` and `path` are where it listens, when the entry says so. */
export interface PlannedTransport {
  readonly transport: Transport;
  readonly port?: number;
  readonly path?: string;
}

export function isTransport(type: string): type is Transport {
  return type === 'stdio' || type === 'sse' || type === 'streamable-http';
}

/** Template variables of a package's URL name its arguments, their hints, or its environment variables. */
function packageValue(entry: ServerPackage, key: string): string | undefined {
  const argument = entry.packageArguments?.find(({ name, valueHint }) =>
    [name, valueHint, name?.replace(/^-+/, '')].includes(key),
  );
  if (argument !== undefined) return requirementOf(key, argument).default;
  const variable = entry.environmentVariables?.find(({ name }) => name === key);
  return variable === undefined ? undefined : requirementOf(key, variable).default;
}

/** Reads `transport` of a package, absent meaning stdio, or says what is wrong with it. */
export function planTransport(entry: ServerPackage): PlannedTransport | { readonly fault: string } {
  const { type = 'stdio', url } = entry.transport ?? {};
  if (!isTransport(type)) return { fault: `the transport "${type}" is not supported` };
  if (type === 'stdio' || !url) return { transport: type };
  const filled = fill(url, (key) => packageValue(entry, key)).text;
  // A port that is still open must not make the rest of the URL unreadable.
  const readable = filled.replace(/:\{[^{}]*\}/, '');
  if (!URL.canParse(readable)) return { transport: type };
  const { port, pathname } = new URL(readable);
  return {
    transport: type,
    ...(port === '' ? {} : { port: Number(port) }),
    ...(pathname === '/' ? {} : { path: decodePath(pathname) }),
  };
}

/** Braces of an open variable come out of the URL parser percent-encoded. */
function decodePath(pathname: string): string {
  return pathname.replaceAll('%7B', '{').replaceAll('%7D', '}');
}

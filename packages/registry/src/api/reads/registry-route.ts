import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Authority } from '../../access/authority.ts';
import { enterGate } from '../../access/gate.ts';
import type { Connection } from '../../engine/kept-pages.ts';
import type { Reader } from '../../engine/page.ts';
import type { Snapshot } from '../../engine/snapshot.ts';
import type { EntryKind } from '../../store/rows.ts';
import {
  registryName,
  parseParameters,
  type Parameters,
  type Parsed,
  type RawParameters,
} from '../route/parameter.ts';
import type { Answer, Route, RouteBase } from '../route/route.ts';

interface RegistryRoute<P extends Parameters, Q extends Parameters> extends Omit<RouteBase, 'replies'> {
  /** What a success holds, the component of the OpenAPI document that it is, and what may be missing. */
  readonly replies: readonly [good: string, schema: string, missing: string];
  /** Below `/registry/{registry}/v0.1` and `/{registry}/v0.1`; the documented form first. */
  readonly paths: readonly [string, ...string[]];
  readonly kind: EntryKind;
  readonly parameters: P;
  readonly query: Q;
  readonly handler: (
    reader: Reader,
    path: Parsed<P>,
    query: Parsed<Q>,
    caller: Connection,
  ) => Answer | Promise<Answer>;
}

/**
 * A consumer endpoint, checked in the order of docs/behaviour/registry.md#order-of-checks: parameters (400), registry
 * (404), its gate (403); then the handler reads what the caller may see. A `{serverName}` may also be written as two
 * path segments.
 */
export function registryRoute<P extends Parameters, Q extends Parameters>(route: RegistryRoute<P, Q>): Route {
  const { paths, kind, parameters, query, handler, replies, ...base } = route;
  const [good, schema, missing] = replies;
  return {
    ...base,
    method: 'GET',
    listener: 'public',
    access: 'registry',
    paths: registryPaths(paths),
    path: { registry: registryName, ...parameters },
    query,
    replies: {
      200: { description: good, schema },
      304: { description: 'It is still what If-None-Match names' },
      400: 'A parameter is invalid',
      404: missing,
    },
    handle: (context, call) => {
      const texts = joinedName(call.path);
      const { registry } = parseParameters({ registry: registryName }, texts);
      const pathValues = parseParameters(parameters, texts);
      const queryValues = parseParameters(query, call.query, context.limits());
      const reader = readerOf(context.snapshot(), registry, call.authority);
      return handler({ kind, ...reader }, pathValues, queryValues, call.connection);
    },
  };
}

/** Both prefixes of every form, and for a server name the form in which proxies have decoded its slash. */
export function registryPaths(paths: readonly string[]): [string, ...string[]] {
  return serverPaths(paths, ['/registry/{registry}/v0.1', '/{registry}/v0.1']);
}

/** Likewise below other prefixes. */
export function serverPaths(paths: readonly string[], prefixes: readonly string[]): [string, ...string[]] {
  const decoded = paths
    .filter((path) => path.includes('{serverName}'))
    .map((path) => path.replace('{serverName}', '{namespace}/{serverName}'));
  const [first = '', ...others] = [...paths, ...decoded].flatMap((path) =>
    prefixes.map((prefix) => prefix + path),
  );
  return [first, ...others];
}

/** The name of a server whether its slash arrived encoded or as two segments. */
export function joinedName(path: RawParameters): RawParameters {
  const { namespace, serverName, ...texts } = path;
  if (serverName === undefined) return path;
  const joined = namespace === undefined ? serverName : `${String(namespace)}/${String(serverName)}`;
  return { ...texts, serverName: joined };
}

function readerOf(snapshot: Snapshot, registry: string, authority: Authority): Omit<Reader, 'kind'> {
  const view = snapshot.registries.get(registry);
  if (view === undefined) throw new SkepError('registry/unknown-registry');
  enterGate(authority, view.gate);
  return { view, visibility: snapshot.visibility(authority), pages: snapshot.pages };
}

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { newestVersion } from '@skep/core/catalog/version-order.ts';
import { serverMeta } from '../../../engine/kinds.ts';
import type { StoredVersion } from '../../../store/rows.ts';
import { registryName, parseParameters, type Parameters, type Parsed } from '../../route/parameter.ts';
import { joinedName } from '../../reads/registry-route.ts';
import type { Answer, Route } from '../../route/route.ts';
import { adminCall, type AdminCall } from '../admin-route.ts';
import type { Target } from '../publish/publish-entry.ts';
import { ANY_TARGET, enterRegistry, targetIn } from '../publish/target-registry.ts';

interface OfficialRoute<P extends Parameters> extends Omit<
  Route,
  'listener' | 'paths' | 'path' | 'query' | 'handle'
> {
  /** Below `/v0`. */
  readonly path: string;
  readonly parameters: P;
  /** What only the form below a registry answers. */
  readonly below?: Route['replies'];
  readonly handler: (call: AdminCall<Buffer>, target: Target, path: Parsed<P>) => Promise<Answer>;
}

/**
 * An endpoint of the official registry's own API, for its publisher: below a registry, whose managed source is meant, and
 * at the root, where the managed source is meant whichever registry lists it. That API is frozen as `v0`.
 */
export function officialRoutes<P extends Parameters>(route: OfficialRoute<P>): readonly Route[] {
  const { path, parameters, below = {}, handler, ...row } = route;
  const handle: Route['handle'] = async (context, { authority, body, ...texts }) => {
    const named = joinedName(texts.path);
    const call = adminCall(context, authority, body);
    if (!Object.hasOwn(named, 'registry'))
      return handler(call, ANY_TARGET, parseParameters(parameters, named));
    const { registry } = parseParameters({ registry: registryName }, named);
    await enterRegistry(call, registry);
    return handler(call, targetIn(registry, authority), parseParameters(parameters, named));
  };
  const forms = [path, ...decodedForm(path)];
  const inRegistry = forms.flatMap((form) => [`/registry/{registry}/v0${form}`, `/{registry}/v0${form}`]);
  const common = { ...row, listener: 'public', query: {}, handle } as const;
  return [
    {
      ...common,
      replies: { ...row.replies, ...below },
      paths: [inRegistry[0] ?? path, ...inRegistry.slice(1)],
      path: { registry: registryName, ...parameters },
    },
    {
      ...common,
      name: `${row.name}AtRoot`,
      paths: [`/v0${path}`, ...decodedForm(`/v0${path}`)],
      path: parameters,
    },
  ];
}

/** The form in which a proxy has decoded the slash of a server's name. */
function decodedForm(path: string): string[] {
  return path.includes('{serverName}') ? [path.replace('{serverName}', '{namespace}/{serverName}')] : [];
}

/** Fails with `registry/not-found` where there is nothing to publish to, in words for whoever uses the publisher. */
export async function requireManaged(call: AdminCall, target: Target): Promise<void> {
  const sources = await call.store.listSources();
  const managed = sources.find(({ kind }) => kind === 'managed');
  const registry = target.registry === undefined ? undefined : await call.store.readRegistry(target.registry);
  if (managed !== undefined && target.accepts(managed, registry)) return;
  throw new SkepError('registry/not-found', {
    message: `${target.missing}: add one to the configuration, or publish to a registry that lists it`,
  });
}

/** A version as the official API shows it: JSON text of `{server, _meta}`. */
export function officialItem(version: StoredVersion, versions: readonly string[]): string {
  const { text } = serverMeta(version, newestVersion(versions) === version.version);
  return `{"server":${version.document},"_meta":${text}}`;
}

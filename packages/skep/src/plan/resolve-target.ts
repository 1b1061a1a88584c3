import type { LocalPlan, RemotePlan, RunPlan } from '@skep/core/catalog/run-plan.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import type { AskValue } from './merge-env.ts';
import { hasLogin, parseHttpUrl } from '@skep/core/fetch/http-url.ts';
import type { Runtime, Source } from '../runtime/runtime.ts';
import type { CatalogSource } from '../catalog/catalog-source.ts';
import {
  checkPackageSource,
  isPackageReference,
  parsePackageReference,
  type PackageSource,
} from '../protocol/reference.ts';
import { nameOfEntry, nameOfHost, nameOfImage, nameOfPackage } from '../settings/workload-name.ts';

/** What to run, and where it came from. */
export interface Resolved {
  readonly source: Source;
  /** Name for the workload when none is given. */
  readonly generatedName: string;
  /** What the catalogue says about running it. */
  readonly plan?: LocalPlan;
  /** Full name in the catalogue. */
  readonly entryName?: string;
  /** The catalogue it was found in. */
  readonly catalog?: Pick<CatalogSource, 'kind' | 'location'>;
}

/** A server that runs elsewhere. */
export interface ResolvedRemote extends Pick<Resolved, 'generatedName' | 'entryName' | 'catalog'> {
  readonly url: string;
  /** What the catalogue says of it; absent for an address that a person gave. */
  readonly plan?: RemotePlan;
}

export interface ResolveOptions {
  readonly openCatalog: () => Promise<CatalogSource>;
  /** Asked only where what the catalogue says may run here. */
  readonly runtime: () => Promise<Pick<Runtime, 'runsImages'>>;
  /** Asks the person which of several servers is meant; absent where nobody can be asked. */
  readonly ask?: AskValue | undefined;
  readonly signal: AbortSignal;
}

/**
 * Looks a target up (docs/behaviour/run.md#targets). Only a definite "not there" makes a name an image, and only when
 * it looks like one: a registry that is down must never turn `github` into somebody's public image.
 */
export async function resolveTarget(
  target: Target,
  options: ResolveOptions,
): Promise<Resolved | ResolvedRemote> {
  if (target.kind === 'remote') return { url: target.url.href, generatedName: nameOfHost(target.url) };
  if (target.kind === 'package') {
    return { source: target.source, generatedName: nameOfPackage(target.reference) };
  }
  const catalog = await options.openCatalog();
  const { findServer, refuseUnknown } = await import('../catalog/choose-server.ts');
  const { ask, signal } = options;
  const found = await findServer(catalog, target.name, { ...(ask && { ask }), signal });
  if (found) {
    const { entry, callable } = found;
    const { choosePlan, runPlans } = await import('@skep/core/catalog/run-plan.ts');
    const isElsewhere = runPlans(entry.document).every((one) => !isLocal(one));
    const images = !isElsewhere && (await options.runtime()).runsImages;
    const plan = choosePlan(entry.document, { images });
    const generatedName = nameOfEntry(callable.includes('/') ? entry.name : callable);
    if (!isLocal(plan)) {
      const { url } = plan.target;
      requireWhole(plan, entry.name);
      return { url, generatedName, plan, entryName: entry.name, catalog };
    }
    return { source: sourceOf(plan.target), generatedName, plan, entryName: entry.name, catalog };
  }
  if (target.mayBeImage) {
    return { source: { kind: 'image', reference: target.name }, generatedName: nameOfImage(target.name) };
  }
  const where =
    catalog.kind === 'built-in'
      ? 'the built-in catalogue'
      : `the catalogue at ${redactUrl(catalog.location)}`;
  return refuseUnknown(catalog, target.name, { where, signal });
}

function isLocal(plan: RunPlan): plan is LocalPlan {
  return plan.target.kind !== 'remote';
}

/** What a catalogue entry runs from. */
export function sourceOf(target: LocalPlan['target']): Source {
  if (target.kind === 'image') return target;
  const { ecosystem, name, version } = target;
  return checkPackageSource({
    kind: 'package',
    ecosystem,
    name,
    ...(version === undefined ? {} : { version }),
  });
}

/** Fails where the address has variables that nobody gave a value. */
function requireWhole({ target: { url }, urlVariables }: RemotePlan, name: string): void {
  if (urlVariables.length === 0) return;
  throw new SkepError('run/missing-env', {
    message: `the address of "${name}" lacks ${urlVariables.map((one) => one.name).join(', ')}`,
    hint: `put it in yourself, and run the address: skep run ${redactUrl(url)}`,
  });
}

/** What the positional argument of `skep run` can mean before anything was looked up. */
export type Target =
  | { readonly kind: 'package'; readonly reference: string; readonly source: PackageSource }
  | { readonly kind: 'remote'; readonly url: URL }
  /** A catalogue name; if the catalogue definitely does not have it, an image, when it looks like one. */
  | { readonly kind: 'name'; readonly name: string; readonly mayBeImage: boolean };

const SCHEME = /^([A-Za-z][A-Za-z0-9+.-]*):\/\//;
// What an image reference may be made of; anything else can only be a mistake or an attack.
const IMAGE = /^[A-Za-z0-9][A-Za-z0-9._/:@-]*$/;
// No catalogue name and no image reference begins so.
const PATH = /^(?:\/|\.{1,2}(?:\/|$))/;

/** A relative path is one in `cwd`. Fails with `target/invalid`, `target/invalid-package` or `usage/missing-argument`; looks nothing up. */
export function parseTarget(text: string, cwd: string): Target {
  if (text === '') throw new SkepError('usage/missing-argument', { message: 'missing argument SERVER' });
  if (isPackageReference(text))
    return { kind: 'package', reference: text, source: parsePackageReference(text, cwd) };
  const scheme = SCHEME.exec(text)?.[1];
  if (scheme === 'http' || scheme === 'https') return { kind: 'remote', url: parseUrl(text) };
  if (scheme !== undefined) {
    throw new SkepError('target/invalid', {
      message: `invalid protocol scheme: "${scheme}://"`,
      hint: 'supported schemes are npx://, uvx://, go://, http:// and https://',
    });
  }
  if (text.length > 512 || /[\s\p{Cc}]/u.test(text)) {
    throw new SkepError('target/invalid', { message: `cannot run ${JSON.stringify(text.slice(0, 80))}` });
  }
  if (PATH.test(text)) {
    throw new SkepError('target/invalid', {
      message: `"${text}" is a path, and no name of a server or an image`,
      hint: `a Go project is run as go://${text}, a saved run configuration with --from-config ${text}`,
    });
  }
  return { kind: 'name', name: text, mayBeImage: IMAGE.test(text) && /[/:@]/.test(text) };
}

function parseUrl(text: string): URL {
  const url = parseHttpUrl(text);
  if (url !== undefined) return refuseLogin(url);
  throw new SkepError('target/invalid', { message: `invalid URL "${text}"`, hint: 'it names no host' });
}

/** The address of a server elsewhere. Fails with `target/invalid` for one that holds a login. */
export function refuseLogin(url: URL): URL {
  if (!hasLogin(url)) return url;
  throw new SkepError('target/invalid', {
    message: `the address "${redactUrl(url.href)}" holds a login`,
    hint: 'give what the server wants with --remote-forward-headers-secret',
  });
}

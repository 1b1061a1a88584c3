import type { LocalPlan, RunPlan } from '@skep/core/catalog/run-plan.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { redactUrl } from '@skep/core/log/redact.ts';
import type { AskValue } from './merge-env.ts';
import { parseHttpUrl } from '../catalog/http-url.ts';
import type { Runtime, Source } from '../runtime/runtime.ts';
import type { CatalogSource } from '../catalog/catalog-source.ts';
import {
  checkPackageSource,
  isPackageReference,
  parsePackageReference,
  type PackageSource,
} from '../protocol/reference.ts';
import { nameOfEntry, nameOfImage, nameOfPackage } from '../settings/workload-name.ts';

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

export interface ResolveOptions {
  readonly openCatalog: () => Promise<CatalogSource>;
  readonly runtime: Pick<Runtime, 'runsImages'>;
  /** Asks the person which of several servers is meant; absent where nobody can be asked. */
  readonly ask?: AskValue | undefined;
  readonly signal: AbortSignal;
}

/**
 * Looks a target up (docs/behaviour/run.md#targets). Only a definite "not there" makes a name an image, and only when
 * it looks like one: a registry that is down must never turn `github` into somebody's public image.
 */
export async function resolveTarget(target: Target, options: ResolveOptions): Promise<Resolved> {
  if (target.kind === 'remote') throw noRemotes(`"${target.url.origin}" is a remote server`);
  if (target.kind === 'package') {
    return { source: target.source, generatedName: nameOfPackage(target.reference) };
  }
  const catalog = await options.openCatalog();
  const { findServer, refuseUnknown } = await import('../catalog/choose-server.ts');
  const { ask, signal } = options;
  const found = await findServer(catalog, target.name, { ...(ask && { ask }), signal });
  if (found) {
    const { entry, callable } = found;
    const { choosePlan } = await import('@skep/core/catalog/run-plan.ts');
    const plan = choosePlan(entry.document, { images: options.runtime.runsImages });
    if (!isLocal(plan)) throw noRemotes(`"${entry.name}" is a remote server`);
    const generatedName = nameOfEntry(callable.includes('/') ? entry.name : callable);
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

function noRemotes(message: string): SkepError {
  return new SkepError('usage/not-available', {
    message: `${message}, and running those is not available yet`,
    hint: 'connect your client to its URL directly',
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
  return { kind: 'name', name: text, mayBeImage: IMAGE.test(text) && /[/:@]/.test(text) };
}

function parseUrl(text: string): URL {
  const url = parseHttpUrl(text);
  if (url !== undefined) return url;
  throw new SkepError('target/invalid', { message: `invalid URL "${text}"`, hint: 'it names no host' });
}

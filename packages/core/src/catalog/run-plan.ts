import { SkepError } from '../errors/skep-error.ts';
import {
  publisherExtension,
  type ExtensionPermissions,
  type ExtensionProvenance,
  type OAuthConfig,
} from './publisher-extension.ts';
import {
  packageTarget,
  isTransport,
  planTransport,
  type PackageTarget,
  type Transport,
} from './run-plan/package-target.ts';
import { fill, requirementOf, variableOf, variableValue, type Requirement } from './run-plan/requirement.ts';
import { planRuntimeArguments, type NotApplied } from './run-plan/runtime-arguments.ts';
import type { ServerDocument, ServerPackage, ServerRemote, ServerArgument } from './server-json.ts';
import { untagged } from './untagged.ts';
import { VARIABLE_NAME } from './variable-name.ts';

interface CommonPlan {
  readonly transport: Transport;
  /** Port for the proxy that the publisher prefers. */
  readonly proxyPort?: number;
  readonly env: readonly Requirement[];
  /** Names of the tools the server is known to offer; empty when the entry does not say. */
  readonly tools: readonly string[];
}

/** Runs an image or package on this machine. */
export interface LocalPlan extends CommonPlan {
  readonly target: PackageTarget;
  /** Where an HTTP server listens inside; absent when the entry does not say. */
  readonly targetPort?: number;
  readonly targetPath?: string;
  /** Used unless the person gives arguments of their own. */
  readonly args: readonly string[];
  /** Required arguments without a value: with any of these, the person must give arguments. */
  readonly missingArgs: readonly Requirement[];
  readonly permissions?: ExtensionPermissions;
  /** Who signed the image. */
  readonly provenance?: ExtensionProvenance;
  /** Paths inside that the entry gives volumes of the engine: what the server keeps. */
  readonly volumes: readonly string[];
  /** What the entry asks of the container engine and Skep leaves to the person: host paths, ports, networks. */
  readonly notApplied: readonly NotApplied[];
}

/** Connects to a server that runs elsewhere. */
export interface RemotePlan extends CommonPlan {
  readonly target: { readonly kind: 'remote'; readonly url: string };
  /** Variables of the URL that have no value; their braces are still in `target.url`. */
  readonly urlVariables: readonly Requirement[];
  readonly headers: readonly Requirement[];
  readonly oauth?: OAuthConfig;
}

export type RunPlan = LocalPlan | RemotePlan;

/** Later requirements of the same name give way to earlier ones. */
function distinct(...lists: readonly (readonly Requirement[])[]): Requirement[] {
  const byName = new Map<string, Requirement>();
  for (const requirement of lists.flat()) {
    if (!byName.has(requirement.name)) byName.set(requirement.name, requirement);
  }
  return [...byName.values()];
}

function subjectTest(target: PackageTarget): (text: string) => boolean {
  const subject = target.kind === 'image' ? untagged(target.reference) : target.name;
  return (text) => text === subject || text.startsWith(`${subject}:`) || text.startsWith(`${subject}@`);
}

function planPackage(document: ServerDocument, entry: ServerPackage): LocalPlan | { readonly fault: string } {
  const named = packageTarget(entry);
  if ('fault' in named) return named;
  const spoken = planTransport(entry);
  if ('fault' in spoken) return spoken;
  const extension = publisherExtension(document, entry.identifier);
  const { args, missing } = planArguments(entry.packageArguments);
  const runtime = planRuntimeArguments(entry.runtimeArguments, subjectTest(named.target));
  const declared = (entry.environmentVariables ?? []).map((variable) =>
    requirementOf(variable.name, variable),
  );
  const env = distinct(declared, runtime.env);
  const misnamed = env.find(({ name }) => !VARIABLE_NAME.test(name));
  if (misnamed) return { fault: `${JSON.stringify(misnamed.name)} is no name of an environment variable` };
  const targetPort = spoken.port ?? extension.target_port ?? undefined;
  const ownArgs = entry.packageArguments?.length ? args : (extension.args ?? []);
  const values = [...ownArgs, ...env.map((one) => one.default ?? '')];
  if (values.some((text) => text.includes('\0'))) return { fault: 'a value of it contains NUL' };
  return {
    target: named.target,
    transport: spoken.transport,
    ...(targetPort === undefined || spoken.transport === 'stdio' ? {} : { targetPort }),
    ...(spoken.path === undefined ? {} : { targetPath: spoken.path }),
    ...(extension.proxy_port ? { proxyPort: extension.proxy_port } : {}),
    args: ownArgs,
    missingArgs: missing,
    env,
    ...(extension.permissions ? { permissions: extension.permissions } : {}),
    ...(extension.provenance ? { provenance: extension.provenance } : {}),
    tools: extension.tools ?? [],
    volumes: runtime.volumes,
    notApplied: runtime.notApplied,
  };
}

function planRemote(document: ServerDocument, entry: ServerRemote): RemotePlan | { readonly fault: string } {
  if (!isTransport(entry.type) || entry.type === 'stdio') {
    return { fault: `the remote transport "${entry.type}" is not supported` };
  }
  const { text, open } = fill(entry.url, (key) => variableValue(entry, key));
  if (!/^https?:\/\/[^\s]+$/.test(text)) return { fault: `"${entry.url}" is no http or https URL` };
  const extension = publisherExtension(document, entry.url);
  const own = (extension.env_vars ?? []).map(({ name, description, required, secret, default: value }) =>
    requirementOf(name, { description, isRequired: required, isSecret: secret, default: value }),
  );
  return {
    target: { kind: 'remote', url: text },
    transport: entry.type,
    urlVariables: open.map((key) => ({
      ...requirementOf(key, variableOf(entry, key) ?? {}),
      required: true,
    })),
    headers: (entry.headers ?? []).map((header) => requirementOf(header.name, header)),
    env: own,
    tools: extension.tools ?? [],
    ...(extension.proxy_port ? { proxyPort: extension.proxy_port } : {}),
    ...(extension.oauth_config ? { oauth: extension.oauth_config } : {}),
  };
}

/** Images first, because an engine isolates best; then packages; then remotes. */
const PREFERENCE = { image: 0, package: 1, remote: 2 } as const;

/**
 * Every way to run a server, best first; ways of the same kind stay in the order of the document
 * (docs/behaviour/run.md#targets). Pure: nothing is looked up or downloaded. Throws `catalog/unusable-server` saying
 * why when there is none, and `catalog/invalid-extension`.
 */
export function runPlans(document: ServerDocument): readonly RunPlan[] {
  const results = [
    ...(document.packages ?? []).map((entry) => planPackage(document, entry)),
    ...(document.remotes ?? []).map((entry) => planRemote(document, entry)),
  ];
  const plans = results.flatMap((result) => ('fault' in result ? [] : [result]));
  if (plans.length > 0) {
    return plans.toSorted((a, b) => PREFERENCE[a.target.kind] - PREFERENCE[b.target.kind]);
  }
  const faults = results.flatMap((result) => ('fault' in result ? [result.fault] : []));
  const reason = faults.length === 0 ? 'it names no package and no remote' : [...new Set(faults)].join('; ');
  throw new SkepError('catalog/unusable-server', { message: `cannot run "${document.name}": ${reason}` });
}

/**
 * The best way to run a server on a machine that may, or may not, run images: those need a container engine,
 * and packages run in the OS sandbox too.
 * Throws as `runPlans`, and `catalog/unusable-server` when there is only an image, and no engine.
 */
export function choosePlan(document: ServerDocument, means: { readonly images: boolean }): RunPlan {
  const plan = runPlans(document).find(({ target }) => target.kind !== 'image' || means.images);
  if (plan !== undefined) return plan;
  throw new SkepError('catalog/unusable-server', {
    message: `cannot run "${document.name}": it comes only as a container image and no container engine answers`,
    hint: 'start a container engine, or choose a server that is an npm or PyPI package',
  });
}

/** Label of an argument for people: the flag, or what a positional argument stands for. */
function labelOf(argument: ServerArgument, index: number): string {
  return argument.name || argument.valueHint || `argument ${index + 1}`;
}

/**
 * Flattens `packageArguments`: a named argument is its flag and then its value, a positional one its value. A
 * named argument with an empty value, and a required boolean one without a value, is a bare flag. An optional
 * argument without value and default is left out; a required one is `missing`, for the person to give.
 */
function planArguments(list: readonly ServerArgument[] | null | undefined) {
  const args: string[] = [];
  const missing: Requirement[] = [];
  for (const [index, argument] of (list ?? []).entries()) {
    const requirement = requirementOf(labelOf(argument, index), argument);
    const flag = argument.type === 'named' && argument.name ? [argument.name] : [];
    if (requirement.default !== undefined) {
      args.push(...flag, ...(requirement.default === '' ? [] : [requirement.default]));
    } else if (requirement.required && requirement.format === 'boolean' && flag.length > 0) {
      args.push(...flag);
    } else if (requirement.required) {
      missing.push(requirement);
    }
  }
  return { args, missing };
}

import { runPlans, type LocalPlan, type RunPlan } from '@skep/core/catalog/run-plan.ts';
import type { Requirement } from '@skep/core/catalog/run-plan/requirement.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { openCatalog } from '../catalog/open-catalog.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { permissionCard } from '../permissions/card.ts';
import { chooseDataPaths } from '../permissions/data-paths.ts';
import { declaredMounts } from '../permissions/profile.ts';
import { packageReference, parsePackageReference, type PackageSource } from '../protocol/reference.ts';
import { loadRunConfig } from '../run-config/file.ts';
import { checkKeys } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Prepared, Source } from '../runtime/runtime.ts';
import { parseReference } from '../secrets/reference.ts';
import { runSettings } from '../settings/run-settings.ts';
import { withHardening } from './first-hardening.ts';
import { planPermissions } from './plan-permissions.ts';
import type { Surroundings, UpgradePlan } from './plan.ts';
import { originOf, preparationOf, sourceOf } from './preparation.ts';
import { sourceOf as sourceOfPlan } from './resolve-target.ts';
import { settingsOfMachine } from './settings-of-run.ts';

export interface UpgradeRequest {
  readonly name: string;
  /** The version or tag that the person named. */
  readonly to?: string | undefined;
}

/**
 * What a workload would be upgraded to: what the entry that it came from names now, else the newest version of its
 * package, else what its tag means now. Its permissions stay what its person granted; what the entry wishes beyond
 * that is said. Fails with `catalog/unusable-server` where the entry has become something else.
 */
export async function planUpgrade({ name, to }: UpgradeRequest, around: Surroundings): Promise<UpgradePlan> {
  const { places } = around;
  const config = await loadRunConfig(places, name);
  checkKeys(config.rest, `the saved configuration of "${name}"`);
  const app = await loadAppConfig(places);
  const { remote_url } = config;
  if (remote_url !== undefined) {
    const { planRemoteUpgrade } = await import('./plan-remote.ts');
    return planRemoteUpgrade({ ...config, remote_url }, { to, app }, around);
  }
  const entry = await entryOf(config, () => openCatalog({ config: app, around }), around);
  const { runtime, info } = await around.connect(config.runtime);
  await info;
  const source = newSource(config, entry, to);
  const settings = mergeSettings(runSettings, settingsOfMachine(app, around));
  const { imageVerification: mode } = valuesOf(runSettings, settings);
  const { verification } = originOf(source, entry?.provenance, mode, app);
  const given = (config.secrets ?? []).map((text) => parseReference(text).target);
  const has = new Set([...Object.keys(config.env_vars), ...given]);
  const needed = (entry?.env ?? []).filter((one) => !has.has(one.name));
  return {
    config,
    runtime,
    preparation: {
      ...preparationOf(source, { build: config.runtime_config ?? {}, settings, app }, around),
      ...(verification && { verification }),
    },
    wanted: {
      ...config,
      image: source.kind === 'image' ? source.reference : packageReference(source),
      ...(source.kind === 'package' && { package: source }),
    },
    missing: needed.filter((one) => one.required && one.default === undefined),
    wishes: entry === undefined ? [] : await wishesOf(config, entry),
    configure: async (prepared, answers) => {
      const defaults = needed.flatMap((one) => (one.default === undefined ? [] : [[one.name, one.default]]));
      const env = { ...Object.fromEntries(defaults), ...answers } as Record<string, string>;
      const next = upgraded(config, { source, prepared, env, needed, volumes: entry?.volumes ?? [] });
      return withHardening(next, prepared);
    },
  };
}

/** What the catalogue says now about the server that a workload came from; undefined for what came from elsewhere. */
async function entryOf(
  { name, registry_server_name: called, package: built }: RunConfig,
  open: () => ReturnType<typeof openCatalog>,
  { signal }: Surroundings,
): Promise<LocalPlan | undefined> {
  if (called === undefined) return undefined;
  const entry = await (await open()).find(called, signal);
  if (entry === undefined) {
    throw new SkepError('target/not-found', {
      message: `"${called}", which ${name} came from, is not in the catalogue any more`,
      hint: 'see skep config get-registry, or remove the workload and run what you want instead of it',
    });
  }
  const isAlike = (plan: RunPlan): plan is LocalPlan =>
    built === undefined
      ? plan.target.kind === 'image'
      : plan.target.kind === 'package' && plan.target.ecosystem === built.ecosystem;
  const plan = runPlans(entry.document).find(isAlike);
  if (plan !== undefined) return plan;
  throw new SkepError('catalog/unusable-server', {
    message: `"${called}" does not come as ${built ? `a package of ${built.ecosystem}` : 'an image'} any more`,
    hint: `remove the workload with skep rm ${name} and run it again, which keeps its data`,
  });
}

function newSource(config: RunConfig, entry: LocalPlan | undefined, to: string | undefined): Source {
  const source = entry === undefined ? sourceOf(config) : sourceOfPlan(entry.target);
  if (source.kind === 'package') {
    const { version: named, ...newest } = source;
    if (to !== undefined && newest.directory !== undefined) {
      throw new SkepError('target/invalid', {
        message: `${config.name} is built from "${newest.directory}", which has no versions`,
        hint: 'leave out --to, which builds what is there now',
      });
    }
    if (to !== undefined) return ofVersion(newest, to);
    return entry === undefined || named === undefined ? newest : source;
  }
  if (/^(?:sha256:)?[0-9a-f]{12,64}$/.test(source.reference)) {
    throw new SkepError('target/invalid', {
      message: `${config.name} was put back to an earlier image, which has no tag to follow`,
      hint: `go forward again with skep upgrade --undo ${config.name}`,
    });
  }
  if (to === undefined) return source;
  const untagged = source.reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  return { kind: 'image', reference: `${untagged}${to.startsWith('sha256:') ? '@' : ':'}${to}` };
}

/** Its grammar is checked as that of a reference. */
function ofVersion(source: PackageSource, version: string): PackageSource {
  return parsePackageReference(`${packageReference(source)}@${version}`);
}

/** Rights are granted when a workload is run; an upgrade only says what its entry wishes by now. */
async function wishesOf(config: RunConfig, { permissions }: LocalPlan): Promise<readonly string[]> {
  if (config.permission_profile_name_or_path !== undefined || permissions === undefined) return [];
  const wished = await planPermissions({
    flag: undefined,
    catalogue: permissions,
    entry: config.name,
    network: undefined,
    volumes: [],
    isolated: config.isolate_network === true,
    cwd: '/',
    confirm: async () => true,
  });
  const before = permissionCard(config);
  return permissionCard({ ...config, permission_profile: wished }).flatMap(({ key, label, values, text }) => {
    const old = before.find((row) => row.key === key);
    // What the person mounted beside it is no wish of the entry's.
    const isFiles = key === 'reads' || key === 'writes';
    const isSame = isFiles ? values.every((one) => old?.values.includes(one)) : old?.text === text;
    return isSame || key === 'not_enforced'
      ? []
      : [`${label}: its entry says ${text}; it has ${old?.text ?? 'none'}`];
  });
}

interface Upgraded {
  readonly source: Source;
  readonly prepared: Prepared;
  readonly env: Readonly<Record<string, string>>;
  readonly needed: readonly Requirement[];
  readonly volumes: readonly string[];
}

function upgraded(config: RunConfig, { source, prepared, env, needed, volumes }: Upgraded): RunConfig {
  const secrets = needed.filter((one) => one.secret && Object.hasOwn(env, one.name)).map(({ name }) => name);
  const data_paths = chooseDataPaths({
    isPackage: source.kind === 'package',
    declared: [...(config.data_paths ?? []), ...volumes, ...(prepared.volumes ?? [])],
    mounts: declaredMounts(config.permission_profile, '/'),
  });
  const { package: _earlier, package_version: _was, ...rest } = config;
  return {
    ...rest,
    image: prepared.reference,
    image_is_ours: prepared.ours,
    ...(source.kind === 'package' && { package: source }),
    ...(prepared.version !== undefined && { package_version: prepared.version }),
    env_vars: { ...env, ...config.env_vars },
    secret_env: [...new Set([...config.secret_env, ...secrets])],
    ...(data_paths !== undefined && { data_paths }),
  };
}

/** What a workload runs from, with its version where that is known. */
export function versionText({ package: built, package_version: version, image }: RunConfig): string {
  if (built === undefined) return image;
  return packageReference({ ...built, ...(version === undefined ? {} : { version }) });
}

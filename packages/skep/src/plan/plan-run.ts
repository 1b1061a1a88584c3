import type { LocalPlan } from '@skep/core/catalog/run-plan.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { openCatalog } from '../catalog/open-catalog.ts';
import { loadAppConfig } from '../config/app-config.ts';
import { checkNothingToHide } from '../permissions/ignore-file.ts';
import { profileMounts } from '../permissions/profile.ts';
import type { Runtime } from '../runtime/runtime.ts';
import { runSettings, type RunValues } from '../settings/run-settings.ts';
import { buildRunConfig } from './build-config.ts';
import { checkInputs } from './check-inputs.ts';
import { transportOf } from './choose-transport.ts';
import { handOverByCatalogue, handOverByIndex } from './hand-over.ts';
import type { NewWorkload, Preparation, Surroundings, WantedPort } from './plan.ts';
import { planPermissions } from './plan-permissions.ts';
import type { CheckedRun, PlannedRun, RunRequest } from './planned-run.ts';
import { trustedAlways } from './preparation.ts';
import { resolveTarget, parseTarget, type Resolved } from './resolve-target.ts';
import { settingsOfRun } from './settings-of-run.ts';
import { unusedBuild, unverified } from './warnings.ts';

/** A run of what the command line names. Everything that can be wrong with it is found here (docs/behaviour/run.md). */
export async function planRun(request: RunRequest, around: Surroundings): Promise<NewWorkload> {
  const checked = await checkRun(request, around);
  handOverByCatalogue(checked, around);
  const { runtime, info } = await around.connect();
  const planned = await decide(checked, around, runtime);
  handOverByIndex(planned, around);
  const { inputs, resolved } = planned;
  const { values } = request;
  const name = inputs.name ?? resolved.generatedName;
  return {
    is: 'new',
    name,
    runtime,
    settings: planned.settings,
    foreground: values.foreground,
    rename: 'choose another --name',
    port: { host: inputs.host, ...wantedPort(values, resolved.plan) },
    env: { ...inputs.env, requirements: resolved.plan?.env ?? [] },
    preparation: preparationOf(planned, around),
    warnings: [
      ...unusedBuild(values, resolved.source, runtime),
      ...(values.imageVerification === 'warn' ? unverified(resolved.source) : []),
    ],
    configure: async (made) => buildRunConfig({ planned, name, ...made, info: await info }),
  };
}

/** Fails for what is wrong with the command line and the files that it names. */
async function checkRun(request: RunRequest, around: Surroundings): Promise<CheckedRun> {
  const target = parseTarget(request.target);
  const config = await loadAppConfig(around.places);
  return { request, target, config, inputs: await checkInputs(request.values, around) };
}

async function decide(checked: CheckedRun, around: Surroundings, runtime: Runtime): Promise<PlannedRun> {
  const { request, target, config, inputs } = checked;
  const { values } = request;
  const resolved = await resolveTarget(target, {
    openCatalog: () => openCatalog({ config, version: around.program.version }),
    runtime,
    signal: around.signal,
  });
  const profile = await planPermissions({
    flag: inputs.profile,
    catalogue: resolved.plan?.permissions,
    entry: `"${resolved.entryName ?? request.target}" of the catalogue`,
    confirm: around.confirm,
    network: values.network,
    volumes: inputs.volumes,
    cwd: around.cwd,
  });
  await checkNothingToHide({
    file: around.places.ignoreFile,
    globally: values.ignoreGlobally,
    mounts: profileMounts(profile, around.cwd),
    override: 'add --ignore-globally=false',
  });
  const args = request.args ?? resolved.plan?.args ?? [];
  checkArguments(request, resolved);
  const settings = settingsOfRun({ ...checked, resolved }, around);
  const merged = { ...request, values: valuesOf(runSettings, settings) };
  const planned = { ...checked, request: merged, settings, resolved, runtime, profile, args };
  if (isTransportKnown(planned)) transportOf(planned, []);
  return planned;
}

function checkArguments(request: RunRequest, { plan, entryName }: Resolved): void {
  const missing = plan?.missingArgs ?? [];
  if (missing.length === 0 || request.args !== undefined) return;
  const names = missing.map((one) =>
    one.description === undefined ? one.name : `${one.name} (${one.description})`,
  );
  throw new SkepError('usage/missing-argument', {
    message: `"${entryName ?? request.target}" needs arguments: ${names.join(', ')}`,
    hint: `give them after --: skep run ${request.target} -- ${missing.map((one) => one.name.toUpperCase()).join(' ')}`,
  });
}

/** Whether an image that is not there yet has no say in the transport, nor in its port. */
function isTransportKnown({ request: { values }, resolved: { source } }: PlannedRun): boolean {
  const { transport, targetPort } = values;
  if (transport !== 'streamable-http') return transport !== undefined;
  return source.kind !== 'image' || targetPort !== undefined;
}

function preparationOf({ request, config, inputs, resolved }: PlannedRun, around: Surroundings): Preparation {
  const { runtimeImage: baseImage, runtimeAddPackage: addPackages = [] } = request.values;
  const { caCert } = inputs;
  return {
    source: resolved.source,
    ...(baseImage === undefined ? {} : { baseImage }),
    addPackages,
    ...(caCert === undefined ? trustedAlways(config, around) : { caCert: async () => caCert }),
  };
}

/** The proxy's port: the flag, else the catalogue's for a server that is reached over HTTP (docs/behaviour/run.md#ports). */
export function wantedPort(
  { proxyPort, transport }: Pick<RunValues, 'proxyPort' | 'transport'>,
  plan: LocalPlan | undefined,
): WantedPort {
  if (proxyPort !== undefined) return { wanted: proxyPort };
  if (plan?.proxyPort === undefined || (transport ?? plan.transport) === 'stdio') return {};
  return {
    wanted: plan.proxyPort,
    hint: 'it is the one that the catalogue names; choose another with --proxy-port, or any free one with --proxy-port 0',
  };
}

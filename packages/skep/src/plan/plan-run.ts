import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import { checkNothingToHide } from '../permissions/ignore-file.ts';
import { profileMounts, type PermissionProfile } from '../permissions/profile.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';
import { openCatalog } from '../catalog/open-catalog.ts';
import { parseTarget, type Target } from './parse-target.ts';
import { checkInputs, type CheckedInputs } from './check-inputs.ts';
import { chooseTransport } from './choose-transport.ts';
import { mergeEnv, type MergedEnv } from './merge-env.ts';
import { checkReachable, planPermissions } from './plan-permissions.ts';
import { resolveTarget, type Resolved } from './resolve-target.ts';

export interface RunRequest {
  readonly target: string;
  readonly values: RunValues;
  /** What stood after `--`. */
  readonly args: readonly string[] | undefined;
}

/** What was asked for, looked at by itself. */
export interface CheckedRun {
  readonly request: RunRequest;
  readonly target: Target;
  readonly config: AppConfig;
  readonly inputs: CheckedInputs;
}

/** Everything decided about a run before anything is made. */
export interface PlannedRun extends CheckedRun {
  readonly resolved: Resolved;
  readonly runtime: Runtime;
  readonly profile: PermissionProfile;
  readonly args: readonly string[];
}

/** Fails for what is wrong with the command line and the files that it names. */
export async function checkRun(request: RunRequest, { places, cwd, env }: Context): Promise<CheckedRun> {
  const target = parseTarget(request.target);
  const config = await loadAppConfig(places);
  const caPath = config.caCertificatePath ?? env['NODE_EXTRA_CA_CERTS'];
  const inputs = await checkInputs(request.values, { cwd, env, caPath });
  return { request, target, config, inputs };
}

/** The steps of a run that look and decide: nothing exists afterwards that did not before. */
export async function planRun(checked: CheckedRun, context: Context, runtime: Runtime): Promise<PlannedRun> {
  const { request, target, config, inputs } = checked;
  const { values } = request;
  const resolved = await resolveTarget(target, {
    openCatalog: () => openCatalog({ config, version: context.program.version }),
    runtimeKind: runtime.kind,
    signal: context.signal,
  });
  const profile = await planPermissions({
    flag: inputs.profile,
    catalogue: resolved.plan?.permissions,
    entry: `"${resolved.entryName ?? request.target}" of the catalogue`,
    confirm: context.confirm,
    network: values.network,
    volumes: inputs.volumes,
    cwd: context.cwd,
  });
  await checkNothingToHide({
    file: context.places.ignoreFile,
    globally: values.ignoreGlobally,
    mounts: profileMounts(profile, context.cwd),
    override: 'add --ignore-globally=false',
  });
  const args = request.args ?? resolved.plan?.args ?? [];
  checkArguments(request, resolved);
  checkEarly(request, resolved, profile);
  return { ...checked, resolved, runtime, profile, args };
}

/** The server's variables; asks a person for what is required and missing, as the last thing before work begins. */
export function planEnv({ inputs, resolved }: PlannedRun, { ask }: Context): Promise<MergedEnv> {
  return mergeEnv({
    ...inputs.env,
    requirements: resolved.plan?.env ?? [],
    ...(ask === undefined ? {} : { ask }),
  });
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

/** What is known about the transport before the image is there; the rest is checked when it is. */
function checkEarly({ values }: RunRequest, { plan, source }: Resolved, profile: PermissionProfile): void {
  const told = values.transport ?? plan?.transport;
  if (told === undefined) return;
  const targetPort = values.targetPort ?? plan?.targetPort;
  const needsImage = told === 'streamable-http' && targetPort === undefined && source.kind === 'image';
  if (needsImage) return;
  const { transport } = chooseTransport({
    flag: values.transport,
    catalogue: plan?.transport,
    source,
    exposedPorts: [],
    targetPort,
  });
  checkReachable(profile, transport);
}

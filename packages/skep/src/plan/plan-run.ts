import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readCaBundle } from '@skep/core/fetch/ca-bundle.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { hintAtGroup } from '../catalog/catalogue-groups.ts';
import { openCatalog } from '../catalog/open-catalog.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import { checkSources } from '../permissions/mounts.ts';
import { profileMounts, withNetworkMode, type PermissionProfile } from '../permissions/profile.ts';
import { outgoingAuthSettings } from '../settings/authentication.ts';
import { runSettings, type RunValues } from '../settings/run-settings.ts';
import { packageReference } from '../protocol/reference.ts';
import type { Wanted } from '../supervisor/policy.ts';
import { planHidden } from './plan-hidden.ts';
import { secretsFor } from './secrets-for.ts';
import { buildRunConfig } from './build-config.ts';
import { checkInputs } from './check-inputs.ts';
import { chooseTransport } from './choose-transport.ts';
import { handOverByBuild, handOverByCatalogue, handOverByIndex } from './hand-over.ts';
import type { NewWorkload, Surroundings } from './plan.ts';
import { checkIsolation, planPermissions } from './plan-permissions.ts';
import type { AskedRun, Isolation, PlannedProxy, PlannedRun, RunRequest } from './planned-run.ts';
import { planAuthz } from './plan-authz.ts';
import { planAudit } from './plan-audit.ts';
import { planSessionRedis } from './plan-session-redis.ts';
import { planExchange } from './plan-exchange.ts';
import { planSignIn } from './plan-sign-in.ts';
import { planTelemetry } from './plan-telemetry.ts';
import { planTools } from './plan-tools.ts';
import { planWebhooks } from './plan-webhooks.ts';
import { referencesOf } from '../run-config/header-forward.ts';
import { isolateToLearn, planLearning } from './plan-learning.ts';
import { buildOf, checkBuildWith, originOf, preparationOf, unusedBuild } from './preparation.ts';
import { parseTarget, resolveTarget, type Resolved, type Target } from './resolve-target.ts';
import { settingsOfMachine, settingsOfRun } from './settings-of-run.ts';

/** A run of what the command line names. Everything that can be wrong with it is found here (docs/behaviour/run.md). */
export async function planRun(given: RunRequest, around: Surroundings): Promise<NewWorkload> {
  const request = isolateToLearn(given);
  const { places, cwd } = around;
  const target = parseTarget(request.target, cwd);
  const config = await loadAppConfig(places);
  const inputs = await checkInputs(request.values, around);
  const chain = await planChain(request, config, around);
  const isolation = isolationOf(request, config);
  // What the flags alone say, before anything is asked.
  if (inputs.profile) {
    const { network } = request.values;
    const wanted = withNetworkMode(inputs.profile, { network, isolated: isolation.on });
    checkIsolation(wanted, isolation.on, isolation.hint);
  }
  handOverByCatalogue(target, config, around);
  const ahead = !isolation.on && mayGetNetwork(request, inputs);
  const { resolved, connected } = await lookUp(target, { request, config, ahead }, around);
  if ('url' in resolved) {
    const { planRemote } = await import('./plan-remote.ts');
    const trusting = { ...inputs, caBundle: inputs.caBundle ?? (await ownBundle(config)) };
    return planRemote({ request, config, inputs: trusting, ...chain, found: resolved }, around);
  }
  refuseHeaders(request.settings);
  const { runtime, info } = await connected();
  const { source, plan } = resolved;
  const asked: AskedRun = { request, config, inputs, resolved, isolation };
  const profile = await permissionsOf(asked, around);
  checkArguments(request, resolved);
  const settings = settingsOfRun(asked, around);
  const values = valuesOf(runSettings, settings);
  const args = request.args ?? plan?.args ?? [];
  const name = inputs.name ?? resolved.generatedName;
  const learning = values.learn ? await planLearning(name, given, cwd) : undefined;
  const planned: PlannedRun = { inputs, resolved, name, values, profile, ...chain, args };
  if (isTransportKnown(planned)) chooseTransport(planned, []);
  handOverByIndex(source, around);
  const secrets = values.explain
    ? {}
    : await secretsFor(referencesOf({ ...chain.webhooks, secrets: values.secret }), around);
  const targets = new Set(inputs.secrets.map(({ target }) => target));
  const { verification, warnings: doubts } = originOf(
    source,
    plan?.provenance,
    values.imageVerification,
    config,
  );
  checkBuildWith(request.values, source);
  handOverByBuild(source, config, around);
  const notes = unusedBuild(request.values, source, runtime);
  return {
    is: 'new',
    name,
    runtime,
    settings,
    foreground: values.foreground || values.learn,
    ...(learning && { learning }),
    rename: 'choose another --name',
    host: inputs.host,
    secrets,
    env: { requirements: (plan?.env ?? []).filter(({ name: variable }) => !targets.has(variable)) },
    preparation: {
      ...preparationOf(source, { build: buildOf(values), settings, app: config }, around),
      ...(verification && { verification }),
    },
    wanted: wantedOf(planned),
    warnings: [...notes, ...unusedSignIn(request.settings), ...warningsOf(values, chain), ...doubts],
    configure: async (made) => buildRunConfig(planned, made, await info),
  };
}

/** As far as can be told before it is known what is run. */
function mayGetNetwork({ values }: RunRequest, { profile }: AskedRun['inputs']): boolean {
  const mode = values.network ?? profile?.network?.mode ?? '';
  return mode === '' || mode === 'bridge' || mode === 'default';
}

/** The runtime is connected to while a catalogue is asked; a server elsewhere does without. */
async function lookUp(
  target: Target,
  { request, config, ahead }: Pick<AskedRun, 'request' | 'config'> & { readonly ahead: boolean },
  around: Surroundings,
) {
  const { program, signal, ask } = around;
  const connecting = target.kind === 'remote' ? undefined : around.connect();
  const begun = connecting?.then(
    ({ runtime }) => (ahead ? around.makeAhead?.(runtime) : undefined),
    () => {},
  );
  const connected = (): ReturnType<Surroundings['connect']> => connecting ?? around.connect();
  const resolved = await resolveTarget(target, {
    openCatalog: () => openCatalog({ config, around }),
    runtime: async () => (await connected()).runtime,
    ask,
    signal,
  }).catch((error: unknown) =>
    hintAtGroup(error, request.target, { config, version: program.version, signal }),
  );
  if (!('url' in resolved)) await begun;
  return { resolved, connected };
}

/** What is to be sent to a server elsewhere has nowhere to go here. */
function refuseHeaders(settings: RunRequest['settings']): void {
  for (const { name, flag } of outgoingAuthSettings) {
    if (!name.startsWith('remoteForward') || !settings.has(name)) continue;
    throw new SkepError('usage/conflict', {
      message: `--${flag} is for servers that run elsewhere, and this one runs here`,
      hint: 'leave it out',
    });
  }
}

/** They say how to sign in to a server elsewhere; the variable may be set for good. */
function unusedSignIn(settings: RunRequest['settings']): readonly string[] {
  const given = outgoingAuthSettings.filter(
    ({ name }) => name.startsWith('remoteAuth') && settings.get(name)?.origin === 'flag',
  );
  return given.map(({ flag }) => `Warning: --${flag} has no effect on a server that runs here\n`);
}

function warningsOf(
  values: RunValues,
  { signIn, exchange, telemetry }: Pick<PlannedRun, 'signIn' | 'exchange' | 'telemetry'>,
): readonly string[] {
  const planned = [signIn, exchange, telemetry].flatMap(({ warnings }) => warnings);
  return [...planned, ...unusedGateway(values), ...olderTransport(values)];
}

/** What stands for `--skep-ca-bundle`, where that is not given. Fails as for the flag. */
async function ownBundle({ caCertificatePath: path }: AppConfig): Promise<string | undefined> {
  if (path !== undefined) await readCaBundle(path);
  return path;
}

/** What the flags say of the steps that calls pass. */
async function planChain(
  { values, settings }: RunRequest,
  config: AppConfig,
  around: Surroundings,
): Promise<Omit<PlannedProxy, 'inputs' | 'values'>> {
  const withMachine = mergeSettings(runSettings, [settings, ...settingsOfMachine(config, around)]);
  const skepCaBundle = values.skepCaBundle ?? config.caCertificatePath;
  const signIn = await planSignIn({ ...values, skepCaBundle }, settings, around.cwd);
  return {
    signIn,
    exchange: await planExchange({ values, settings }, signIn.config, around.cwd),
    tools: await planTools(values, around.cwd),
    authz: await planAuthz(values, around.cwd),
    webhooks: await planWebhooks(values, around.cwd),
    audit: await planAudit(values, around.cwd),
    scaling: await planSessionRedis({ ...values, skepCaBundle }, around.cwd),
    telemetry: await planTelemetry(valuesOf(runSettings, withMachine), settings, around),
  };
}

function wantedOf({ name, values, profile, resolved: { source, entryName } }: PlannedRun): Wanted {
  const isPackage = source.kind === 'package';
  return {
    name,
    group: values.group,
    image: isPackage ? packageReference(source) : source.reference,
    ...(isPackage && { package: source }),
    ...(entryName !== undefined && { registry_server_name: entryName }),
    permission_profile: profile,
    isolate_network: values.isolateNetwork,
  };
}

/** What the workload may do; fails where it would see what is to stay hidden. */
async function permissionsOf(asked: AskedRun, around: Surroundings): Promise<PermissionProfile> {
  const { inputs, resolved, isolation } = asked;
  const { target, values } = asked.request;
  const { cwd, confirm } = around;
  const profile = await planPermissions({
    flag: inputs.profile,
    catalogue: resolved.plan?.permissions,
    entry: `"${resolved.entryName ?? target}" of the catalogue`,
    confirm,
    network: values.network,
    volumes: inputs.volumes,
    isolated: isolation.on,
    cwd,
  });
  checkIsolation(profile, isolation.on, isolation.hint);
  await checkSources(profileMounts(profile, cwd));
  const { ignoreGlobally: globally, printResolvedOverlays: print } = values;
  await planHidden({ globally, mounts: profileMounts(profile, cwd), print }, around);
  return profile;
}

function unusedGateway({ allowRuntimeGateway, isolateNetwork }: RunValues): readonly string[] {
  if (!allowRuntimeGateway || isolateNetwork) return [];
  return ['Warning: --allow-runtime-gateway has no effect without --isolate-network\n'];
}

function olderTransport({ proxyMode }: RunValues): readonly string[] {
  if (proxyMode !== 'sse') return [];
  return ['Warning: --proxy-mode sse is deprecated; clients of today speak streamable-http\n'];
}

/** Whether the workload is isolated: the flag says so, else the configuration file. */
function isolationOf({ settings, values }: RunRequest, { isolation }: AppConfig): Isolation {
  const given = settings.get('isolateNetwork');
  if (values.learn) return { on: true, hint: 'leave out --learn, or what gives it another network' };
  const without = values.network === undefined ? 'use another permission profile' : 'leave out --network';
  return given?.origin === 'flag'
    ? { on: values.isolateNetwork, hint: `leave out --isolate-network, or ${without}` }
    : {
        on: isolation === 'on',
        hint: `to run it without isolation, add --isolate-network=false; to isolate it, ${without}`,
      };
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
function isTransportKnown({ values, resolved: { source } }: PlannedRun): boolean {
  const { transport, targetPort } = values;
  if (transport === 'stdio' || transport === undefined) return transport !== undefined;
  return source.kind !== 'image' || targetPort !== undefined;
}

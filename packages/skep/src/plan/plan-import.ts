import { networkOf } from '../supervisor/workload-spec.ts';
import { isAbsolute, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readJsonText } from '@skep/core/files/read-limited.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { mergeSettings } from '@skep/core/settings/merge.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { loadAppConfig, type AppConfig } from '../config/app-config.ts';
import {
  checkSources,
  isNamedVolume,
  parseVolume,
  sourceText,
  type Declared,
} from '../permissions/mounts.ts';
import {
  builtinProfile,
  declaredMounts,
  profileMounts,
  withVolumes,
  withNetworkMode,
  type PermissionProfile,
} from '../permissions/profile.ts';
import { MAX_RUN_CONFIG_BYTES } from '../run-config/file.ts';
import { requireGroup } from '../run-config/group-file.ts';
import { checkHeaders, referencesOf } from '../run-config/header-forward.ts';
import { fromToolhive } from '../run-config/import-toolhive.ts';
import { referenceTo, decodeRunConfig, type RunConfig } from '../run-config/run-config.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import { NOWHERE_HERE } from '../settings/identity.ts';
import { runSettings } from '../settings/run-settings.ts';
import { checkReferences } from '../secrets/reference.ts';
import { checkPublished } from './check-inputs.ts';
import { withHardening } from './first-hardening.ts';
import { hiddenOf, planHidden } from './plan-hidden.ts';
import { secretsFor } from './secrets-for.ts';
import { checkIsolation, requireConsent, checkReachable } from './plan-permissions.ts';
import { checkExchange } from './plan-exchange.ts';
import { importAuthz } from './plan-authz.ts';
import { checkedAudit } from './plan-audit.ts';
import { checkedTelemetry } from './plan-telemetry.ts';
import { checkSignIn } from './plan-sign-in.ts';
import { checkTools } from './plan-tools.ts';
import { checkWebhooks } from './plan-webhooks.ts';
import { withAbsolutePaths } from '../run-config/webhooks.ts';
import type { NewWorkload, Surroundings } from './plan.ts';
import { withAbsoluteFiles } from './plan-remote-auth.ts';
import { configGrants } from './config-grants.ts';
import { importedSignIn, requireSealed } from './plan-remote-sign-in.ts';
import { isPrivateHost } from './private-host.ts';
import { originOf, preparationOf, provenanceOf, sourceOf } from './preparation.ts';
import { layer, settingsOfFile, settingsOfMachine } from './settings-of-run.ts';

export interface ImportRequest {
  readonly path: string;
  /** `--trust-config`: the person grants what the file asks for. */
  readonly trusted: boolean;
  readonly foreground: boolean;
  /** Only says what decides it. */
  readonly explain: boolean;
  /** Flags and variables; the limits among them are used instead of what the file says. */
  readonly settings: Settings;
}

/**
 * A run of an exported file: the same name, port, variables and mounts (docs/behaviour/run.md#import). No flag may stand
 * beside `--from-config`, so the file is where everything is put right.
 */
export async function planImport(request: ImportRequest, around: Surroundings): Promise<NewWorkload> {
  const { path, foreground } = request;
  const app = await loadAppConfig(around.places);
  const { config: imported, text, document } = await readImport(path, around, app);
  await requireGroup(around.places, imported.group);
  checkPublished(imported);
  checkReferences(imported.secrets ?? []);
  const references = referencesOf(imported);
  await checkSources(profileMounts(imported.permission_profile, around.cwd));
  if (!request.explain) await requireSealed(imported, around);
  await checkTrust(imported, { ...request, lifts: liftsIsolation(imported, app) }, around);
  const elsewhere = imported.remote_url;
  const { runtime, info } = await around.connect(elsewhere === undefined ? undefined : NOWHERE_HERE);
  if (elsewhere === undefined && imported.isolate_network !== true && networkOf(imported) === 'bridge')
    await around.makeAhead?.(runtime);
  const settings = mergeSettings(runSettings, [
    request.settings,
    settingsOfFile({ path, text, document }),
    ...secretsOf(imported, around.env),
    ...settingsOfMachine(app, around),
  ]);
  const source = sourceOf(imported);
  const secrets = request.explain ? {} : await secretsFor(references, around);
  const { token, ...signIn } = await importedSignIn(imported, secrets, app);
  const { imageVerification: mode } = valuesOf(runSettings, settings);
  const isVerified = mode !== 'disabled' && elsewhere === undefined;
  const expected = isVerified ? await provenanceOf(imported, app, around) : undefined;
  const { verification, warnings } = originOf(source, expected, isVerified ? mode : 'disabled', app);
  return {
    is: 'new',
    name: imported.name,
    runtime,
    foreground,
    settings,
    rename: 'give it another "name" in the file',
    host: imported.host,
    secrets,
    ...signIn,
    env: {
      requirements: imported.secret_env.map((name) => ({ name, required: true, secret: true })),
      give: (name) => `in the environment, as ${SECRET}${name}`,
    },
    preparation: {
      ...preparationOf(source, { build: imported.runtime_config ?? {}, settings, app }, around),
      ...(verification && { verification }),
    },
    wanted: imported,
    warnings,
    configure: async ({ port, merged, prepared, signedIn }) => {
      const { remote_auth_config: _asked, ...others } = imported;
      const remote_auth_config = token ?? signedIn;
      const config = {
        ...others,
        ...(remote_auth_config && { remote_auth_config }),
        image: prepared.reference,
        image_is_ours: prepared.ours,
        port,
        ...givenLimits(request.settings),
        env_vars: merged.env,
        runtime: referenceTo(await info),
      };
      return withHardening(config, prepared);
    },
  };
}

/** A file may come from anywhere: what it gives away of this machine is the person's decision (`run/not-granted`). */
async function checkTrust(
  config: RunConfig,
  request: ImportRequest & { readonly lifts: boolean },
  around: Surroundings,
): Promise<void> {
  const grants = [
    ...configGrants(config, around.cwd),
    ...(request.lifts ? ['run without the isolation that skep config set isolation on asks for'] : []),
    ...(await takenSecrets(config, around)),
  ];
  if (request.trusted) {
    for (const grant of grants) around.terminal.err(`Granted: ${printable(grant)}\n`);
    return;
  }
  await requireConsent({
    who: `"${request.path}"`,
    grants,
    hint: 'read the file; to allow it, add --trust-config',
    confirm: around.confirm,
  });
}

/** True for a file that speaks against what the person set for every run. */
function liftsIsolation(config: RunConfig, { isolation }: Pick<AppConfig, 'isolation'>): boolean {
  return isolation === 'on' && config.isolate_network === false;
}

/** What a person keeps in variables was not put there for this file; elsewhere somebody set them for it. */
async function takenSecrets({ secret_env }: RunConfig, around: Surroundings): Promise<readonly string[]> {
  const taken = secret_env.filter((name) => around.env[SECRET + name] !== undefined);
  if (taken.length === 0) return [];
  const { chosenKind } = await import('../secrets/open-provider.ts');
  if ((await chosenKind(around)) !== 'environment') return [];
  return taken.map((name) => `give the server the secret "${name}" as ${name}`);
}

/** Begins the name of a variable that holds the value of a secret one. */
const SECRET = 'SKEP_SECRET_';

/** Values of secret variables are not in the file: they come from `SKEP_SECRET_<NAME>`, or are asked for. */
function secretsOf({ secret_env }: RunConfig, env: Surroundings['env']): readonly Settings[] {
  return secret_env.flatMap((name) => {
    const value = env[SECRET + name];
    return value === undefined ? [] : [layer('env', SECRET + name, { env: { [name]: value } })];
  });
}

interface ImportContext extends Pick<Surroundings, 'cwd' | 'env'> {
  readonly places: Pick<Surroundings['places'], 'ignoreFile'>;
  readonly terminal: Pick<Surroundings['terminal'], 'err'>;
}

/**
 * Reads and checks the file of `--from-config`; nothing is made yet. With the configuration comes what it was read from:
 * the text, to name places in it, and what that says under the names that Skep has for it. Fails with
 * `run/invalid-config` and as its parts do.
 */
export async function readImport(
  path: string,
  { cwd, env, places, terminal }: ImportContext,
  { isolation }: Pick<AppConfig, 'isolation'>,
) {
  const { value, text } = await readJsonText(resolve(cwd, path), {
    maxBytes: MAX_RUN_CONFIG_BYTES,
    what: 'run configuration',
  });
  const { value: document, warnings } = fromToolhive(value, `"${path}"`, text);
  const decoded = decodeRunConfig(document, `"${path}"`, text);
  // A file is what it says, not what another one does.
  const { tools_override_path: _tools, authz_config_path: _authz, ...file } = decoded;
  const said = await asElsewhere(file, path);
  const authz = await importAuthz(decoded, cwd);
  const isolated = said.isolate_network ?? (isolation === 'on' && said.remote_url === undefined);
  const config = {
    ...said,
    ...authz,
    ...(isolated ? { isolate_network: true } : {}),
    ...absoluteFiles(said, cwd),
    ...(await checkedAudit(said, cwd)),
    ...(await checkedTelemetry(said, { env, cwd })),
  };
  checkSupported(config, path);
  const profile = withVolumes(withNetworkMode(profileOf(config, path), { isolated }), [], cwd);
  checkIsolation(
    profile,
    isolated,
    'give the "permission_profile" of the file another network mode, or set "isolate_network": false in it',
  );
  checkVolumes({ ...config, permission_profile: profile }, path, cwd);
  checkReachable(profile, config.transport, {
    isolated,
    hint: 'set "isolate_network": true in the file, give its "permission_profile" a network, or set "transport": "stdio" if the server speaks it',
  });
  await planHidden(hiddenOf({ ...config, permission_profile: profile }, cwd), { places, terminal });
  for (const line of await checkSignIn(config)) terminal.err(line);
  for (const line of await checkExchange(config)) terminal.err(line);
  await checkTools(config);
  await checkWebhooks(config);
  for (const warning of warnings) terminal.err(`Warning: ${printable(warning)}\n`);
  return { config: { ...config, permission_profile: profile }, text, document };
}

/** A server elsewhere has no rights here; whether its address is public is looked up, whatever the file says. */
async function asElsewhere(config: RunConfig, path: string): Promise<RunConfig> {
  const { header_forward: headers, remote_url: url, remote_allow_private_ip: _said, ...others } = config;
  if (url === undefined) {
    const idle = (['header_forward', 'remote_auth_config'] as const).find((key) => config[key] !== undefined);
    if (idle === undefined) return config;
    throw invalid(path, `"${idle}": is for a server elsewhere, and "remote_url" is missing`);
  }
  if (config.transport === 'stdio')
    throw invalid(path, '"transport": a server elsewhere does not speak stdio');
  const checked = headers && checkHeaders(headers);
  const isPrivate = await isPrivateHost(new URL(url));
  return {
    ...others,
    remote_url: url,
    ...(checked && { header_forward: checked }),
    ...(isPrivate ? { remote_allow_private_ip: true } : {}),
    isolate_network: false,
    permission_profile: {},
    volumes: [],
  };
}

function absoluteFiles(
  {
    jwks_auth_token_file: tokenFile,
    skep_ca_bundle: bundle,
    validating_webhooks: validating,
    mutating_webhooks: mutating,
    remote_auth_config: auth,
    scaling_config: scaling,
  }: RunConfig,
  cwd: string,
): Partial<RunConfig> {
  const redis = scaling?.session_redis;
  return {
    ...(redis?.password_file && {
      scaling_config: {
        ...scaling,
        session_redis: { ...redis, password_file: resolve(cwd, redis.password_file) },
      },
    }),
    ...(tokenFile ? { jwks_auth_token_file: resolve(cwd, tokenFile) } : {}),
    ...(bundle ? { skep_ca_bundle: resolve(cwd, bundle) } : {}),
    ...(auth && { remote_auth_config: withAbsoluteFiles(auth, cwd) }),
    ...(validating && { validating_webhooks: validating.map((one) => withAbsolutePaths(one, cwd)) }),
    ...(mutating && { mutating_webhooks: mutating.map((one) => withAbsolutePaths(one, cwd)) }),
  };
}

function checkSupported(config: RunConfig, path: string): void {
  const { transport, target_port: port, remote_url: elsewhere, scaling_config: scaling } = config;
  if (scaling?.session_redis && transport !== 'streamable-http')
    throw invalid(
      path,
      `"scaling_config.session_redis": is for servers of streamable HTTP, and this one speaks ${transport}`,
    );
  if (transport !== 'stdio' && port === undefined && elsewhere === undefined) {
    throw invalid(path, '"target_port": is missing');
  }
}

/** The profile itself counts; its name does only where the file holds none, and Skep knows what it stands for. */
function profileOf(config: RunConfig, path: string): PermissionProfile {
  const name = config.permission_profile_name_or_path ?? '';
  if (Object.keys(config.permission_profile).length > 0 || name === '') return config.permission_profile;
  const builtin = builtinProfile(name);
  if (builtin) return builtin;
  throw invalid(path, `"permission_profile": is missing, and "${name}" is not one that Skep knows`);
}

/** Volumes are a note; the profile says what is mounted. A note of something else would be lost silently. */
function checkVolumes(config: RunConfig, path: string, cwd: string): void {
  const mounts = declaredMounts(config.permission_profile, cwd);
  for (const item of config.volumes) {
    const noted = parseVolume(item, cwd);
    const { target, readOnly } = noted;
    // A relative path was meant from another directory.
    const isExact = isAbsolute(item) || isNamedVolume(noted);
    const same = (mount: Declared): boolean =>
      mount.target === target &&
      mount.readOnly === readOnly &&
      (isExact ? sourceText(mount) === sourceText(noted) : !isNamedVolume(mount));
    if (mounts.some(same)) continue;
    const list = readOnly ? 'read' : 'write';
    throw invalid(
      path,
      `"volumes": "${item}" is not in "permission_profile.${list}", which says what is mounted`,
    );
  }
}

function invalid(path: string, what: string): SkepError {
  return new SkepError('run/invalid-config', { message: `"${path}" is not a run configuration: ${what}` });
}

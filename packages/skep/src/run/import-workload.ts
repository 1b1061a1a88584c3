import { resolve } from 'node:path';
import { readJson } from '@skep/core/files/read-limited.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { Context } from '../cli/context.ts';
import { openRuntime, referenceTo } from '../cli/open-runtime.ts';
import { checkNothingToHide } from '../permissions/ignore-file.ts';
import { profileMounts, withVolumes } from '../permissions/profile.ts';
import { printable } from '../print/printable.ts';
import { openProgress } from '../print/progress.ts';
import { decodeRunConfig } from '../run-config/decode.ts';
import { MAX_RUN_CONFIG_BYTES } from '../run-config/file.ts';
import { fromToolhive } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { claimName, promisedPorts } from './claim-name.ts';
import { configGrants } from './config-grants.ts';
import { requireConsent } from './consent.ts';
import { choosePort } from './free-port.ts';
import { launchSaved } from './launch-saved.ts';
import { mergeEnv } from './merge-env.ts';
import { checkReachable } from './plan-permissions.ts';
import { prepareSaved } from './prepare-saved.ts';
import { savePrepared } from './save-prepared.ts';

export interface ImportRequest {
  readonly path: string;
  /** `--trust-config`: the person grants what the file asks for. */
  readonly trusted: boolean;
  readonly foreground: boolean;
}

/** `skep run --from-config PATH` (spec run-workload §7.2): the same name, port, variables and mounts as were exported. */
export async function importWorkload(request: ImportRequest, context: Context): Promise<void> {
  const { path, foreground } = request;
  const imported = await readImport(path, context);
  await checkTrust(imported, request, context);
  const opened = await openRuntime(context, { signal: context.signal });
  const lock = await claimName(imported.name, opened, context);
  const progress = openProgress(context.terminal);
  try {
    const port = await choosePort({
      host: imported.host,
      wanted: imported.port,
      promised: await promisedPorts(context),
      random: context.random,
    });
    const env = await withSecrets(imported, context);
    const prepared = await prepareSaved(imported, { opened, context, report: progress });
    const { reference: image, ours: image_is_ours } = prepared;
    const config = {
      ...imported,
      image,
      image_is_ours,
      port,
      env_vars: env,
      runtime: referenceTo(opened.info),
    };
    await savePrepared(config, opened.runtime, context.places);
    await launchSaved(config, { foreground, progress, context });
  } finally {
    progress.end();
    lock.release();
  }
}

/** Reads and checks the file; nothing is made yet. */
async function readImport(path: string, { cwd, places, terminal }: Context): Promise<RunConfig> {
  const value = await readJson(resolve(cwd, path), {
    maxBytes: MAX_RUN_CONFIG_BYTES,
    what: 'run configuration',
  });
  const { value: document, noEffect } = fromToolhive(value, `"${path}"`);
  const config = decodeRunConfig(document, `"${path}"`);
  if (config.transport === 'sse' || config.proxy_mode === 'sse') {
    throw new SkepError('usage/not-available', {
      message: `"${path}" uses the transport "sse", which is not available yet`,
    });
  }
  if (config.transport === 'streamable-http' && config.target_port === undefined) {
    throw new SkepError('run/invalid-config', {
      message: `"${path}" is not a run configuration: "target_port": is missing`,
    });
  }
  if (config.group !== 'default') {
    throw new SkepError('run/invalid-config', {
      message: `"${path}" is in group '${config.group}', which does not exist`,
    });
  }
  checkReachable(config.permission_profile, config.transport);
  const mounts = profileMounts(config.permission_profile, cwd);
  if (config.ignore_config?.load_global ?? true) {
    const override = 'set "ignore_config": {"load_global": false} in the file';
    await checkNothingToHide({ file: places.ignoreFile, mounts, override });
  }
  if (noEffect.length > 0) terminal.err(`Warning: kept, but without effect yet: ${noEffect.join(', ')}\n`);
  return { ...config, permission_profile: withVolumes(config.permission_profile, [], cwd) };
}

/** A file may come from anywhere: what it gives away of this machine is the person's decision (`run/not-granted`). */
async function checkTrust(config: RunConfig, request: ImportRequest, context: Context): Promise<void> {
  const grants = configGrants(config, context.cwd);
  if (request.trusted) {
    for (const grant of grants) context.terminal.err(`Granted: ${printable(grant)}\n`);
    return;
  }
  await requireConsent({
    who: `"${request.path}"`,
    grants,
    hint: 'read the file; to allow it, add --trust-config',
    confirm: context.confirm,
  });
}

/** Values of secret variables are not in the file: they come from `SKEP_SECRET_<NAME>`, or are asked for. */
function withSecrets(config: RunConfig, { env, ask }: Context): Promise<Readonly<Record<string, string>>> {
  const given = config.secret_env.flatMap((name) => {
    const value = env[`SKEP_SECRET_${name}`];
    return value === undefined ? [] : [[name, value] as const];
  });
  const requirements = config.secret_env.map((name) => ({ name, required: true, secret: true }));
  const inputs = { file: Object.fromEntries(given), flags: config.env_vars, requirements };
  return mergeEnv({ ...inputs, ...(ask === undefined ? {} : { ask }) }).then((merged) => merged.env);
}

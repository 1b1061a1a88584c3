import type { Context } from '../cli/context.ts';
import { openRuntime } from '../cli/open-runtime.ts';
import { referenceTo } from '../run-config/run-config.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { openProgress } from '../print/progress.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import { claimName, promisedPorts } from './claim-name.ts';
import { configGrants } from '../plan/config-grants.ts';
import { requireConsent } from '../plan/consent.ts';
import { planPort } from '../runtime/free-port.ts';
import { launchSaved } from './launch-saved.ts';
import { mergeEnv } from '../plan/merge-env.ts';
import { prepareSaved } from './prepare-saved.ts';
import { readImport } from '../plan/read-import.ts';
import { tellLimits } from './tell-limits.ts';
import { savePrepared } from './save-prepared.ts';
import { warnUnverified } from './warn-unverified.ts';

export interface ImportRequest {
  readonly path: string;
  /** `--trust-config`: the person grants what the file asks for. */
  readonly trusted: boolean;
  readonly foreground: boolean;
  /** What was given instead of what the file says. */
  readonly limits: Partial<RunConfig>;
}

/** No flag may stand beside `--from-config`, so the file is where everything is put right. */
const RENAME = 'give it another "name" in the file';

/** `skep run --from-config PATH`: the same name, port, variables and mounts as were exported. */
export async function importWorkload(request: ImportRequest, context: Context): Promise<void> {
  const { path, foreground } = request;
  const imported = await readImport(path, context);
  await checkTrust(imported, request, context);
  const opened = await openRuntime(context, { signal: context.signal });
  const lock = await claimName(imported.name, opened.runtime, context, RENAME);
  const progress = openProgress(context.terminal);
  try {
    const choosePort = await planPort({
      host: imported.host,
      wanted: imported.port,
      promised: () => promisedPorts(context),
      random: context.random,
      hint: 'set another "port" in the file, or 0 for a free one',
    });
    const env = await withSecrets(imported, context);
    if (!imported.package) warnUnverified({ kind: 'image', reference: imported.image }, context.terminal);
    const prepared = await prepareSaved(imported, { opened, context, report: progress });
    const { reference: image, ours: image_is_ours } = prepared;
    const config = {
      ...imported,
      image,
      image_is_ours,
      port: await choosePort(),
      ...request.limits,
      env_vars: env,
      runtime: referenceTo(opened.info),
    };
    await savePrepared(config, opened.runtime, context.places);
    // What is said stays, and the line of the progress does not.
    progress.end();
    await tellLimits(config, opened.runtime, context);
    await launchSaved(config, { foreground, progress, context });
  } finally {
    progress.end();
    lock.release();
  }
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
  const give = (name: string): string => `in the environment, as SKEP_SECRET_${name}`;
  const inputs = { file: Object.fromEntries(given), flags: config.env_vars, requirements, give };
  return mergeEnv({ ...inputs, ...(ask === undefined ? {} : { ask }) }).then((merged) => merged.env);
}

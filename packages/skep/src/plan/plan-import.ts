import type { Settings } from '@skep/core/settings/field.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { isLoopback } from '@skep/proxy/call/loopback.ts';
import { grantsOf } from '../permissions/profile.ts';
import { referenceTo, type RunConfig } from '../run-config/run-config.ts';
import { givenLimits } from '../run-config/proxy-limits.ts';
import { requireConsent } from './consent.ts';
import type { EnvInputs } from './merge-env.ts';
import type { NewWorkload, Surroundings } from './plan.ts';
import { preparationOf } from './preparation.ts';
import { readImport } from './read-import.ts';
import { settingsOfFile } from './settings-of-run.ts';
import { unverified } from './warnings.ts';

export interface ImportRequest {
  readonly path: string;
  /** `--trust-config`: the person grants what the file asks for. */
  readonly trusted: boolean;
  readonly foreground: boolean;
  /** Flags and variables; the limits among them are used instead of what the file says. */
  readonly settings: Settings;
}

/**
 * A run of an exported file: the same name, port, variables and mounts (docs/behaviour/run.md#import). No flag may stand
 * beside `--from-config`, so the file is where everything is put right.
 */
export async function planImport(request: ImportRequest, around: Surroundings): Promise<NewWorkload> {
  const { config: imported, text, document } = await readImport(request.path, around);
  await checkTrust(imported, request, around);
  const { runtime, info } = await around.connect();
  const preparation = await preparationOf(imported, around);
  return {
    is: 'new',
    name: imported.name,
    runtime,
    foreground: request.foreground,
    settings: settingsOfFile({ path: request.path, text, document }, request.settings),
    rename: 'give it another "name" in the file',
    port: {
      host: imported.host,
      wanted: imported.port,
      hint: 'set another "port" in the file, or 0 for a free one',
    },
    env: withSecrets(imported, around.env),
    preparation,
    warnings: unverified(preparation.source),
    configure: async ({ port, merged, prepared }) => ({
      ...imported,
      image: prepared.reference,
      image_is_ours: prepared.ours,
      port,
      ...givenLimits(request.settings),
      env_vars: merged.env,
      runtime: referenceTo(await info),
    }),
  };
}

/** A file may come from anywhere: what it gives away of this machine is the person's decision (`run/not-granted`). */
async function checkTrust(config: RunConfig, request: ImportRequest, around: Surroundings): Promise<void> {
  const grants = configGrants(config, around.cwd);
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

/** Values of secret variables are not in the file: they come from `SKEP_SECRET_<NAME>`, or are asked for. */
function withSecrets({ secret_env, env_vars }: RunConfig, env: Surroundings['env']): EnvInputs {
  const given = secret_env.flatMap((name) => {
    const value = env[`SKEP_SECRET_${name}`];
    return value === undefined ? [] : [[name, value] as const];
  });
  return {
    file: Object.fromEntries(given),
    flags: env_vars,
    requirements: secret_env.map((name) => ({ name, required: true, secret: true })),
    give: (name) => `in the environment, as SKEP_SECRET_${name}`,
  };
}

/** What running an imported configuration gives away of this machine, a phrase each; empty for one that keeps to itself. */
export function configGrants(config: RunConfig, cwd: string): readonly string[] {
  return [
    ...grantsOf(config.permission_profile, cwd),
    ...(config.sandbox_user === undefined ? [] : [`run as the user ${config.sandbox_user} in the sandbox`]),
    ...(config.allowed_origins ?? []).map((origin) => `let web pages of ${origin} use the server`),
    ...(isLoopback(config.host) ? [] : [`listen on ${config.host}, which other machines can reach`]),
  ];
}

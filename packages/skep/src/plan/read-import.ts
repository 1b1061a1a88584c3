import { isAbsolute, resolve } from 'node:path';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readJsonText } from '@skep/core/files/read-limited.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { checkNothingToHide } from '../permissions/ignore-file.ts';
import { parseVolume } from '../permissions/mount-declaration.ts';
import {
  builtinProfile,
  profileMounts,
  withVolumes,
  withNetworkMode,
  type PermissionProfile,
} from '../permissions/profile.ts';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { MAX_RUN_CONFIG_BYTES } from '../run-config/file.ts';
import { fromToolhive } from '../run-config/import-toolhive.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Mount } from '../permissions/mount-declaration.ts';
import type { Surroundings } from './plan.ts';
import { checkReachable } from './plan-permissions.ts';

export interface ImportSurroundings extends Pick<Surroundings, 'cwd' | 'terminal'> {
  readonly places: Pick<Surroundings['places'], 'ignoreFile'>;
}

interface ReadImport {
  readonly config: RunConfig;
  /** The file, to name places in it. */
  readonly text: string;
  /** What it says under the names that Skep has for it. */
  readonly document: unknown;
}

/** Reads and checks the file of `--from-config`; nothing is made yet. Fails with `run/invalid-config` and as its parts do. */
export async function readImport(
  path: string,
  { cwd, places, terminal }: ImportSurroundings,
): Promise<ReadImport> {
  const { value, text } = await readJsonText(resolve(cwd, path), {
    maxBytes: MAX_RUN_CONFIG_BYTES,
    what: 'run configuration',
  });
  const { value: document, warnings } = fromToolhive(value, `"${path}"`, text);
  const config = decodeRunConfig(document, `"${path}"`, text);
  checkSupported(config, path);
  const profile = withVolumes(withNetworkMode(profileOf(config, path)), [], cwd);
  checkVolumes({ ...config, permission_profile: profile }, path, cwd);
  checkReachable(profile, config.transport === 'stdio' ? 'stdio' : 'streamable-http');
  await checkNothingToHide({
    file: places.ignoreFile,
    globally: config.ignore_config?.load_global ?? true,
    mounts: profileMounts(profile, cwd),
    override: 'set "ignore_config": {"load_global": false} in the file',
  });
  for (const warning of warnings) terminal.err(`Warning: ${printable(warning)}\n`);
  return { config: { ...config, permission_profile: profile }, text, document };
}

function checkSupported(config: RunConfig, path: string): void {
  if (config.transport === 'sse' || config.proxy_mode === 'sse') {
    throw new SkepError('usage/not-available', {
      message: `"${path}" uses the transport "sse", which is not available yet`,
    });
  }
  if (config.transport === 'streamable-http' && config.target_port === undefined) {
    throw invalid(path, '"target_port": is missing');
  }
  if (config.group !== 'default') {
    throw new SkepError('run/invalid-config', {
      message: `"${path}" is in group '${config.group}', which does not exist`,
    });
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

/** Volumes are a note of what was given; the profile says what is mounted. A note of something else would be lost silently. */
function checkVolumes(config: RunConfig, path: string, cwd: string): void {
  const mounts = profileMounts(config.permission_profile, cwd);
  for (const item of config.volumes) {
    const { source, target, readOnly } = parseVolume(item, cwd);
    // A relative path was meant from another directory.
    const same = (mount: Mount): boolean =>
      mount.target === target &&
      mount.readOnly === readOnly &&
      (!isAbsolute(item) || mount.source === source);
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

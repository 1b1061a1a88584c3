import { existsSync } from 'node:fs';
import { lstat, mkdir, readlink, rm, symlink } from 'node:fs/promises';
import { userInfo } from 'node:os';
import { dirname, isAbsolute, join, relative, resolve } from 'node:path';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { atomicWrite } from '@skep/core/files/atomic-write.ts';
import { ifThere } from '@skep/core/files/errno.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import {
  supervisorCommand,
  supervisorEnv,
  WHERE_THINGS_ARE,
  type Program,
} from '../supervisor/spawn-supervisor.ts';
import { isUnchanged, launchdPlist, LAUNCHD_LABEL, systemdUnit, type Writer } from './service-text.ts';

/** Whom services are started for, and by what. */
export interface Starter {
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly home: string;
  readonly platform: NodeJS.Platform;
  readonly program: Program;
  /** Whether systemd runs this machine; sd_booted(3). */
  readonly hasSystemd: boolean;
  /** The home directory that the system knows, where services are looked for. */
  readonly homeOfUser: string;
}

/** What starts services on this machine. */
export function starterOf(context: Omit<Starter, 'hasSystemd' | 'homeOfUser'>): Starter {
  const { env, cwd, home, platform, program } = context;
  const hasSystemd = existsSync('/run/systemd/system');
  return { env, cwd, home, platform, program, hasSystemd, homeOfUser: userInfo().homedir };
}

/** A file that something reads at boot, and a link that makes it read it. */
interface Place {
  readonly file: string;
  readonly link?: string;
  readonly write: Writer;
}

export type State =
  | 'off'
  | 'on'
  /** As it was written, by another version of Skep or Node, or for other directories. */
  | 'outdated'
  /** The file is no longer what was written, or was never ours. */
  | 'changed'
  /** Nothing here starts services. */
  | 'unavailable';

const MAX_BYTES = 256 * 1024;

/** Where it is, or would be. */
export async function lookAtAutostart(
  starter: Starter,
): Promise<{ readonly file?: string; readonly state: State }> {
  let place;
  try {
    place = placeOf(starter);
  } catch (error) {
    if (hasCode(error, 'autostart/unavailable')) return { state: 'unavailable' };
    throw error;
  }
  return { file: place.file, state: await stateOf(place, starter) };
}

/**
 * Has the supervisor started at boot, which starts the servers again that ran when the machine went down. Resolves to the
 * file. Fails with `autostart/unavailable`, or with `autostart/changed` where another file stands in its place.
 */
export async function turnOn(starter: Starter): Promise<string> {
  const place = placeOf(starter);
  refuseElsewhere(starter);
  const text = place.write(serviceOf(starter));
  if ((await stateOf(place, starter)) === 'changed') throw changed(place.file, 'is not replaced');
  await atomicWrite(place.file, text, { mode: 0o600 });
  if (place.link === undefined) return place.file;
  await mkdir(dirname(place.link), { recursive: true, mode: 0o750 });
  const there = await ifThere(lstat(place.link));
  if (there === undefined) await symlink(relative(dirname(place.link), place.file), place.link);
  else if (!(await leadsTo(place.link, place.file))) throw changed(place.link, 'leads elsewhere');
  return place.file;
}

/** Removes what `turnOn` made; undefined where there was nothing. Fails with `autostart/changed` as it does. */
export async function turnOff(starter: Starter): Promise<string | undefined> {
  const place = placeOf(starter);
  const state = await stateOf(place, starter);
  if (state === 'changed') throw changed(place.file, 'is left alone');
  // A link to nothing would be left of a file that somebody removed.
  const linked = place.link !== undefined && (await leadsTo(place.link, place.file));
  if (place.link !== undefined && linked) await rm(place.link, { force: true });
  await rm(place.file, { force: true });
  return state === 'off' && !linked ? undefined : place.file;
}

function placeOf({ env, home, platform, hasSystemd, program }: Starter): Place {
  if (platform === 'darwin')
    return { file: join(home, 'Library/LaunchAgents', `${LAUNCHD_LABEL}.plist`), write: launchdPlist };
  if (platform !== 'linux' || !hasSystemd) {
    throw new SkepError('autostart/unavailable', {
      message: 'systemd does not run this machine, and nothing else is known to start services for you',
      hint: `have whatever does start ${supervisorCommand(program).join(' ')}`,
    });
  }
  const configured = env['XDG_CONFIG_HOME'] ?? '';
  const units = join(isAbsolute(configured) ? configured : join(home, '.config'), 'systemd/user');
  return {
    file: join(units, 'skep.service'),
    link: join(units, 'default.target.wants/skep.service'),
    write: systemdUnit,
  };
}

/** Services of another home would be written, and never started. */
function refuseElsewhere({ home, homeOfUser }: Starter): void {
  if (home === homeOfUser) return;
  throw new SkepError('autostart/unavailable', {
    message: `services are started from "${homeOfUser}", and HOME is "${home}"`,
    hint: 'run it with your own HOME',
  });
}

function serviceOf({ env, cwd, program }: Starter) {
  const kept = supervisorEnv({ env, cwd });
  const rows = WHERE_THINGS_ARE.flatMap((name) => {
    const value = kept[name];
    const isSecret = value !== undefined && URL.parse(value)?.password;
    return value === undefined || value === '' || isSecret ? [] : [[name, value]];
  });
  return { command: supervisorCommand(program), env: Object.fromEntries(rows) as Record<string, string> };
}

async function stateOf(place: Place, starter: Starter): Promise<State> {
  let text;
  try {
    text = await readText(place.file, { maxBytes: MAX_BYTES, what: 'service' });
  } catch (error) {
    if (hasCode(error, 'file/not-found')) return 'off';
    if (error instanceof SkepError) return 'changed';
    throw error;
  }
  if (!isUnchanged(text)) return 'changed';
  if (place.link !== undefined && !(await leadsTo(place.link, place.file))) return 'off';
  return text === place.write(serviceOf(starter)) ? 'on' : 'outdated';
}

async function leadsTo(link: string, file: string): Promise<boolean> {
  const target = await ifThere(readlink(link), 'EINVAL', 'ENOTDIR');
  return target !== undefined && resolve(dirname(link), target) === file;
}

function changed(path: string, fate: string): SkepError {
  return new SkepError('autostart/changed', {
    message: `"${path}" is not as skep autostart wrote it, and ${fate}`,
    hint: 'move it away, and try again',
  });
}

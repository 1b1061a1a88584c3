import { SkepError } from '@skep/core/errors/skep-error.ts';
import { refusedHosts, type Refused } from '../egress/refused.ts';
import { hostAndPort } from '../permissions/allowed-hosts.ts';
import { isReadOnly, saysReadOnly } from '../permissions/hardening.ts';
import { isPlainPath, offeredPath } from '../permissions/offer-path.ts';
import { declaredMounts } from '../permissions/profile.ts';
import { toldHosts, toldPaths } from '../permissions/told-lacks.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** What a server seems to lack, as it said itself or as its gateway did. */
export interface Lack {
  readonly what: string;
  /** The command line that gives it. */
  readonly permit: string;
  /** The flag of `skep run` that does, where there is one. */
  readonly flag?: string;
}

const MAX_LACKS = 3;

/**
 * What a server seems to lack, by the lines it wrote, with the command line that gives it: paths of this machine that may be
 * offered (`offeredPath`), and hosts where it has no network. Empty where nothing was understood. At most three of each.
 */
export async function lacksOf(
  config: RunConfig,
  lines: readonly string[],
  home: string,
): Promise<readonly Lack[]> {
  const paths: Lack[] = [];
  for (const told of toldPaths(lines)) {
    const right = await offeredPath(told, config, home);
    if (right === undefined || paths.some(({ what }) => what === right.path)) continue;
    const { path } = right;
    const [flag, suffix] = right.readOnly === true ? [':ro', ''] : ['', ':rw'];
    const permit = `skep permit ${config.name} ${path}${suffix}`;
    paths.push({ what: path, permit, flag: `--volume ${path}:${path}${flag}` });
    if (paths.length === MAX_LACKS) break;
  }
  return [...paths, ...ownFilesOf(config, lines), ...hostsOf(config, lines)];
}

/** A server may answer at first and write beside its own code later, where its container is read-only. */
function ownFilesOf(config: RunConfig, lines: readonly string[]): readonly Lack[] {
  const { name, read_only, hardening } = config;
  if ((read_only ?? hardening) === undefined || !isReadOnly(config) || !lines.some(saysReadOnly)) return [];
  const mounts = declaredMounts(config.permission_profile, '/');
  const own = toldPaths(lines).find(
    ({ path, wantsWrite }) =>
      wantsWrite && isPlainPath(path) && !mounts.some(({ target }) => `${path}/`.startsWith(`${target}/`)),
  );
  if (own === undefined && toldPaths(lines).some(({ wantsWrite }) => wantsWrite)) return [];
  const what = `to write ${own?.path ?? 'files'} in its container`;
  const permit = `skep stop ${name} && skep start --read-only=false ${name}`;
  return [{ what, permit, flag: '--read-only=false' }];
}

/** The gateway of an isolated workload says better what was refused. */
function hostsOf(config: RunConfig, lines: readonly string[]): readonly Lack[] {
  if (config.isolate_network === true || config.permission_profile.network?.mode !== 'none') return [];
  const decisions = toldHosts(lines).map(
    (told) => ({ ...told, time: '', decision: 'denied', via: 'direct', count: 1 }) as const,
  );
  return refusedHosts(decisions, config).flatMap(lackOf).slice(0, MAX_LACKS);
}

const lackOf = ({ host, port, permit }: Refused): readonly Lack[] =>
  permit === undefined ? [] : [{ what: hostAndPort(host, port), permit }];

interface FailedStart {
  readonly runtime: Runtime;
  /** What it wrote last. */
  readonly lines: () => Promise<readonly string[]>;
  readonly home: string;
}

/** The error of a server that did not come up, with what it seems to lack as the next step; any other as it is. */
export async function withLacks(
  error: unknown,
  config: RunConfig,
  { runtime, lines, home }: FailedStart,
): Promise<unknown> {
  if (!(error instanceof SkepError)) return error;
  if (error.code !== 'run/crashed-at-start' && error.code !== 'run/no-answer') return error;
  try {
    const refused = refusedHosts(await runtime.traffic(config.name), config).flatMap(lackOf);
    const lacks = [...(await lacksOf(config, await lines(), home)), ...refused.slice(0, MAX_LACKS)];
    if (lacks.length === 0) return error;
    const { code, message, detail } = error;
    return new SkepError(code, { message, hint: lacks.map(hintOf).join('; '), detail, cause: error });
  } catch {
    // Why it did not come up is what the person must hear.
    return error;
  }
}

function hintOf({ what, permit, flag }: Lack): string {
  const way = flag === undefined ? 'list it in its permission profile' : `run it with ${flag}`;
  return `if it needs ${what}, ${way}; where it is kept, ${permit} gives it`;
}

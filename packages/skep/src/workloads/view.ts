import type { Places } from '@skep/core/files/places.ts';
import { SkepError, hasCode } from '@skep/core/errors/skep-error.ts';
import { findSummary, loadRunConfig } from '../run-config/file.ts';
import type { RunSummary } from '../run-config/summary.ts';
import { checkWorkloadName } from '../settings/workload-name.ts';
import { isReservedLabel } from '../run-config/labels.ts';
import { workloadUrl } from '../run-config/workload-url.ts';
import { frontUrl, readFrontDoor, type FrontDoor } from '../supervisor/front-state.ts';
import { remembering, type ProcessIdentity } from '../supervisor/process-identity.ts';
import {
  hostOf,
  readStatus,
  type StatusWord,
  type Statuses,
  type WorkloadStatus,
} from '../supervisor/state.ts';
import { packageReference } from '../protocol/reference.ts';
import { isBeingMade, knownNames } from './name-lock.ts';

/** One workload as people and scripts see it. */
export interface WorkloadView {
  readonly name: string;
  readonly package: string;
  /** Of a server elsewhere. */
  readonly remoteUrl?: string;
  readonly status: StatusWord | 'unknown';
  readonly context?: string;
  /** Of the port of its own. */
  readonly url: string;
  readonly port: number;
  /** Where it is served at the front door; absent where it is not. */
  readonly frontUrl?: string;
  readonly transport: string;
  readonly proxyMode?: string;
  /** Its name in the registry that it came from. */
  readonly registryName?: string | undefined;
  readonly group: string;
  readonly createdAt?: Date;
  readonly startedAt?: Date;
  readonly labels: Readonly<Record<string, string>>;
  /** Those that clients are offered, where that is a choice. */
  readonly tools?: readonly string[];
}

export interface ViewDeps {
  readonly places: Places;
  readonly isAlive: (process: ProcessIdentity) => boolean;
}

/**
 * All workloads by name, sorted; those of a moment ago where their `statuses` were read then. Only reads: what is untrue
 * is shown as it is, never written back. Of a configuration only what is shown of it is looked at.
 */
export async function viewWorkloads(deps: ViewDeps, statuses?: Statuses): Promise<readonly WorkloadView[]> {
  const names = await knownNames(deps.places, statuses?.keys());
  if (names.length === 0) return [];
  // Most are hosted by the same process.
  const looking = { places: deps.places, isAlive: remembering(deps.isAlive) };
  const front = readFrontDoor(looking);
  const views = await Promise.all(
    names.map((name) => viewOne(name, looking, { front, statuses, load: summaryOrWhole })),
  );
  return views.filter((view) => view !== undefined);
}

/** Whatever is not as this release writes it is read whole, which says what is wrong with it. */
async function summaryOrWhole(places: Places, name: string): Promise<RunSummary> {
  return findSummary(places, name) ?? (await loadRunConfig(places, name));
}

/** Fails with `workload/not-found`, and with `run/invalid-name` for what can name no workload. */
export async function viewWorkload(name: string, deps: ViewDeps): Promise<WorkloadView> {
  const view = await viewOne(checkWorkloadName(name), deps, {
    front: readFrontDoor(deps),
    load: loadRunConfig,
  });
  if (view) return view;
  throw new SkepError('workload/not-found', { message: `workload "${name}" not found` });
}

/** Where people and clients reach it. */
export const shownUrl = ({ frontUrl, url }: Pick<WorkloadView, 'frontUrl' | 'url'>): string =>
  frontUrl ?? url;

interface Known {
  readonly front: FrontDoor;
  readonly statuses?: Statuses | undefined;
  readonly load: (places: Places, name: string) => Promise<RunSummary>;
}

async function viewOne(
  name: string,
  deps: ViewDeps,
  { front, statuses, load }: Known,
): Promise<WorkloadView | undefined> {
  try {
    const status = statuses?.get(name) ?? (await readStatus(deps.places, name));
    const config = await load(deps.places, name);
    if (status) {
      const view = toView(config, { ...status, ...truth(status, deps.isAlive) });
      return { ...view, ...behind(front, view, hostOf(status, deps.isAlive)) };
    }
    return (await isBeingMade(name, deps.places)) ? undefined : toView(config, interrupted(name));
  } catch (error) {
    // Removed while we looked.
    if (hasCode(error, 'workload/not-found')) return undefined;
    // Whatever is wrong with the files of one workload, the others are shown.
    if (!(error instanceof SkepError)) throw error;
    const nothing = { package: '', url: '', port: 0, transport: '', group: 'default', labels: {} };
    return { name, status: 'unknown', context: error.message, ...nothing };
  }
}

/** What another process hosts, in the foreground, is not behind the door; what none hosts is once it is started. */
function behind(
  front: FrontDoor,
  { name, url }: Pick<WorkloadView, 'name' | 'url'>,
  host: ProcessIdentity | undefined,
): Pick<WorkloadView, 'frontUrl'> {
  if (front.is !== 'open' || (host && host.pid !== front.process.pid)) return {};
  return { frontUrl: frontUrl(front.port, name, url) };
}

/** The command that should have started it was killed. */
function interrupted(name: string): ShownStatus {
  return { status: 'error', status_context: `its start was interrupted; remove it with skep rm ${name}` };
}

/** What a status is worth when the process that vouches for it has died (docs/behaviour/run.md#what-list-shows). */
function truth(
  status: WorkloadStatus,
  isAlive: ViewDeps['isAlive'],
): { status: StatusWord; status_context?: string } | undefined {
  if (status.process_id === 0 || hostOf(status, isAlive)) return undefined;
  return { status: 'unhealthy', status_context: 'its proxy process is not running' };
}

type ShownStatus = Pick<WorkloadStatus, 'status'> & Partial<WorkloadStatus>;

function packageOf({ remote_url: elsewhere, package: built, image }: RunSummary): string {
  if (elsewhere !== undefined) return 'remote';
  return built ? packageReference(built) : image;
}

function toView(config: RunSummary, status: ShownStatus): WorkloadView {
  return {
    name: config.name,
    package: packageOf(config),
    status: status.status,
    ...(status.status_context === undefined ? {} : { context: status.status_context }),
    url: workloadUrl(config),
    port: config.port,
    ...(config.remote_url === undefined ? {} : { remoteUrl: config.remote_url }),
    transport: config.transport,
    proxyMode: config.proxy_mode,
    registryName: config.registry_server_name,
    group: config.group,
    ...(status.created_at === undefined ? {} : { createdAt: new Date(status.created_at) }),
    ...(status.started_at === undefined ? {} : { startedAt: new Date(status.started_at) }),
    labels: Object.fromEntries(
      Object.entries(config.container_labels).filter(([key]) => !isReservedLabel(key)),
    ),
    ...(config.tools_filter && { tools: config.tools_filter }),
  };
}

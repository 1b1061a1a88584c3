import { createHash } from 'node:crypto';
import { readdirSync, readFileSync, readlinkSync } from 'node:fs';
import path from 'node:path';
import { HOLD } from '@skep/cli/runtime/sandbox/own-network.ts';
import { engine } from '../images.ts';
import type { TestUser } from '../skep.ts';

/** A process that has something to do with this user. */
export interface Seen {
  readonly pid: number;
  readonly command: string;
  /** Whose files it holds; undefined for one of no workload. */
  readonly workload: string | undefined;
  /** Names of the files of that workload that it holds. */
  readonly holds: readonly string[];
  /** It reads what the proxy says to the server. */
  readonly isServer: boolean;
}

/** Something on the engine that belongs to a workload. */
export interface Part {
  /** A holder is a container that has a network open for another one. */
  readonly what: 'container' | 'holder' | 'network' | 'volume';
  readonly called: string;
  readonly workload: string | undefined;
  readonly running: boolean;
  readonly pid: () => Promise<number>;
}

export interface Looked {
  readonly processes: readonly Seen[];
  readonly parts: readonly Part[];
  /** Networks on the engine that were made ahead, and holders of such, that belong to no workload. */
  readonly spares: readonly Part[];
  /** Directories that a supervisor has ready for the next sandbox, whose processes are not among those above. */
  readonly ready: number;
  /** Processes that hold a network which no sandbox is in yet: of this user's supervisors, and of programs that are gone. */
  readonly holders: readonly number[];
  /** Workloads of which the sandbox keeps something. */
  readonly directories: readonly string[];
  /** Directories of the kernel for a workload of this user, by its name. */
  readonly groupsOf: (name: string) => readonly string[];
}

/** Everything of this user's that runs or lies outside of files. The supervisor and its watcher are no part of it. */
export async function look(user: TestUser): Promise<Looked> {
  const parts = await engineParts();
  const own = new Set([...user.supervisors(), ...user.watchers()]);
  const isReady = ({ workload = '' }: Seen): boolean => own.has(Number(/^\.(\d+)-/.exec(workload)?.[1]));
  const seen = processesOf(user.dir).filter(({ pid }) => !own.has(pid));
  return {
    parts: parts.filter((part) => part.workload !== undefined),
    spares: parts.filter((part) => part.workload === undefined),
    ready: new Set(seen.filter(isReady).map(({ workload }) => workload)).size,
    processes: seen.filter((one) => !isReady(one)),
    holders: holdersOf(own),
    directories: listed(path.join(user.dir, 'data/skep/sandbox')).filter((one) => !one.startsWith('.')),
    groupsOf: (name) => groupsOf(path.join(user.dir, 'data/skep/sandbox', name)),
  };
}

/** Control groups of the workload in this directory. */
export function groupsOf(directory: string): string[] {
  const hash = createHash('sha256').update(directory).digest('hex').slice(0, 12);
  const above = ['memory/skep', 'pids/skep', 'cpu/skep', 'skep'].map((one) => `/sys/fs/cgroup/${one}`);
  return above.flatMap((one) => listed(one).filter((name) => name.endsWith(`-${hash}`)).map((name) => `${one}/${name}`)); // prettier-ignore
}

interface Container {
  readonly Id: string;
  readonly Names: readonly string[];
  readonly State: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** Empty when it went meanwhile. */
interface Inspected {
  readonly State?: { readonly Pid: number };
  readonly NetworkSettings?: { readonly Networks: object };
}

interface Network {
  readonly Id: string;
  readonly Name: string;
  readonly Labels: Readonly<Record<string, string>> | null;
}

/** The engine is the test's own, so all that is Skep's on it is this user's. */
async function engineParts(): Promise<Part[]> {
  const filters = encodeURIComponent(JSON.stringify({ label: ['skep.managed=true'] }));
  const get = async <T>(url: string): Promise<T> => JSON.parse((await engine('GET', url)).text) as T;
  const containers = await get<Container[]>(`/containers/json?all=1&filters=${filters}`);
  const networks = await get<Network[]>(`/networks?filters=${filters}`);
  const volumes = await get<{ Volumes: Network[] | null }>(`/volumes?filters=${filters}`);
  const common = { running: false, pid: async () => 0 };
  const networkOf = (labels: Container['Labels']): string => labels?.['skep.network'] ?? '';
  const owners = new Map<string, string | undefined>();
  for (const { Labels } of containers)
    if (Labels?.['skep.name'] !== undefined) owners.set(networkOf(Labels), Labels['skep.name']);
  const parts: Part[] = [];
  for (const { Id, Names, State, Labels } of containers) {
    const inspected = (): Promise<Inspected> => get(`/containers/${Id}/json`);
    const pid = async (): Promise<number> => (await inspected()).State?.Pid ?? 0;
    const isHolder = Labels?.['skep.auxiliary-workload'] === 'true' && networkOf(Labels) !== '';
    const workload = isHolder ? owners.get(networkOf(Labels)) : Labels?.['skep.name'];
    parts.push({
      what: isHolder ? 'holder' : 'container',
      called: Names[0]?.slice(1) ?? Id,
      workload,
      running: State === 'running',
      pid,
    });
    for (const name of Object.keys((await inspected()).NetworkSettings?.Networks ?? {}))
      owners.set(name, workload);
  }
  for (const { Name, Labels } of networks)
    parts.push({
      ...common,
      what: 'network',
      called: Name,
      workload: Labels?.['skep.name'] ?? owners.get(Name),
    });
  for (const { Name, Labels } of volumes.Volumes ?? [])
    parts.push({ ...common, what: 'volume', called: Name, workload: Labels?.['skep.name'] ?? 'unknown' });
  return parts;
}

/** Those whose parent is one of `own`, or has ended: then some other process has taken them in, which is no Node. */
function holdersOf(own: ReadonlySet<number>): number[] {
  return allPids().filter((pid) => {
    if (!text(`/proc/${pid}/cmdline`).includes(HOLD)) return false;
    const parent = Number(/^PPid:\t(\d+)$/m.exec(text(`/proc/${pid}/status`))?.[1]);
    return own.has(parent) || !/node|skep/.test(path.basename(link(`/proc/${parent}/exe`)));
  });
}

const allPids = (): number[] =>
  listed('/proc')
    .map(Number)
    .filter((one) => one > 0);

function processesOf(dir: string): Seen[] {
  const found: Seen[] = [];
  for (const pid of allPids()) {
    if (pid === process.pid) continue;
    const command = text(`/proc/${pid}/cmdline`).replaceAll('\0', ' ').trim();
    // A thread of the kernel, or one that has ended and was not waited for.
    if (command === '') continue;
    const open = listed(`/proc/${pid}/fd`).map((fd) => [fd, link(`/proc/${pid}/fd/${fd}`)] as const);
    const held = open.map(([, file]) => file).filter((file) => file.startsWith(`${dir}/data/skep/sandbox/`));
    const below = held.map((file) =>
      path.relative(path.join(dir, 'data/skep/sandbox'), file).split(path.sep),
    );
    if (held.length === 0 && !command.includes(dir) && !text(`/proc/${pid}/environ`).includes(dir)) continue;
    const isServer =
      open.some(([fd, file]) => fd === '0' && file.endsWith('/stdin')) && !/^\S*bwrap /.test(command);
    const holds = below.map(([, file = '']) => file);
    found.push({ pid, command: command.slice(0, 200), workload: below[0]?.[0], holds, isServer });
  }
  return found;
}

function listed(folder: string): readonly string[] {
  try {
    return readdirSync(folder);
  } catch {
    return [];
  }
}

function text(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch {
    return '';
  }
}

function link(file: string): string {
  try {
    return readlinkSync(file);
  } catch {
    return '';
  }
}

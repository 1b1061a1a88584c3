import { readFileSync } from 'node:fs';
import path from 'node:path';
import { ask, type TestUser } from '../skep.ts';
import type { State } from './schedule.ts';
import { look, type Looked } from './look.ts';

/** One of the workloads that things happen to. */
export interface Workload {
  readonly name: string;
  readonly on: 'docker' | 'sandbox';
  readonly isolated: boolean;
}

export const WORKLOADS: readonly Workload[] = [
  { name: 'image', on: 'docker', isolated: false },
  { name: 'image-isolated', on: 'docker', isolated: true },
  { name: 'package', on: 'sandbox', isolated: false },
  { name: 'package-isolated', on: 'sandbox', isolated: true },
];

interface Saved {
  readonly port: number;
  readonly image: string;
  readonly package_version?: string;
}

interface Status {
  readonly status: string;
  readonly status_context?: string;
}

export const savedOf = (user: TestUser, name: string): Saved | undefined =>
  json(path.join(user.dir, `state/skep/runconfigs/${name}.json`)) as Saved | undefined;
export const statusOf = (user: TestUser, name: string): Status | undefined =>
  json(path.join(user.dir, `data/skep/statuses/${name}.json`)) as Status | undefined;

/** Undefined for what is not there; what is written atomically is always whole. */
function json(file: string): unknown {
  let text;
  try {
    text = readFileSync(file, 'utf8');
  } catch {
    return undefined;
  }
  return JSON.parse(text);
}

const SHOULD_RUN = new Set(['starting', 'running', 'unhealthy']);

/** What a workload is to be: only what was stopped, or did not come to run, is not wanted. */
export function stateOf(user: TestUser, name: string): State {
  if (savedOf(user, name) === undefined) return 'gone';
  const status = statusOf(user, name)?.status;
  return status !== undefined && SHOULD_RUN.has(status) ? 'running' : 'stopped';
}

/**
 * What is not yet as it is to be: something wanted that does not answer or lacks a part, something left of what is not
 * wanted. A sentence each; none once all has settled.
 */
export async function unsettled(user: TestUser): Promise<readonly string[]> {
  const looked = await look(user);
  const wrong: string[] = [];
  for (const workload of WORKLOADS) wrong.push(...(await wrongWith(workload, user, looked)));
  const names = new Set(WORKLOADS.map(({ name }) => name));
  for (const { pid, command, workload } of looked.processes)
    if (workload === undefined || !names.has(workload)) wrong.push(`process ${pid} is left: ${command}`);
  for (const what of ['network', 'holder']) {
    const spares = looked.spares.filter((part) => part.what === what).map(({ called }) => called);
    if (spares.length > 1) wrong.push(`more than one ${what} was made ahead: ${spares.join(', ')}`);
  }
  if (looked.ready > 1) wrong.push(`${looked.ready} sandboxes were made ahead`);
  if (looked.holders.length > looked.ready)
    wrong.push(`networks are held for nobody, by ${looked.holders.join(', ')}`);
  if (user.supervisors().length > 1) wrong.push('there is more than one supervisor');
  return wrong;
}

async function wrongWith(
  { name, on, isolated }: Workload,
  user: TestUser,
  looked: Looked,
): Promise<string[]> {
  const processes = looked.processes.filter((one) => one.workload === name);
  const parts = looked.parts.filter((one) => one.workload === name);
  const [saved, status] = [savedOf(user, name), statusOf(user, name)];
  if (saved === undefined) {
    const left = [
      ...processes.map(({ pid, command }) => `process ${pid} (${command})`),
      ...parts.map((part) => `${part.what} ${part.called}`),
      ...(status === undefined ? [] : [`the status "${status.status}"`]),
      ...(looked.directories.includes(name) ? ['its directory'] : []),
      ...looked.groupsOf(name),
    ];
    return left.map((one) => `${name} is gone, but not ${one}`);
  }
  const running = parts.filter((part) => part.running);
  if (stateOf(user, name) === 'stopped') {
    if (status?.status === 'stopping' || status?.status === 'removing')
      return [`${name} is ${status.status}`];
    const left = [...running.map((part) => part.called), ...processes.map(({ command }) => command)];
    return left.map((one) => `${name} is ${status?.status ?? 'only saved'}, but ${one} runs`);
  }
  if (status?.status !== 'running') return [`${name} is ${status?.status} (${status?.status_context ?? ''})`];
  const answer = await ask(`http://127.0.0.1:${saved.port}/mcp`, 'tools/list').catch(
    (error: unknown) => error,
  );
  if (!(answer instanceof Object) || !('result' in answer))
    return [`${name} does not answer: ${String(answer)}`];
  const lacks: string[] = [];
  if (on === 'docker' && running.filter((part) => part.what === 'container').length !== (isolated ? 2 : 1))
    lacks.push(`${name} has not the containers that it needs`);
  if (on === 'docker' && parts.filter((part) => part.what === 'network').length !== (isolated ? 2 : 1))
    lacks.push(
      `${name} has not the networks that it needs: ${parts
        .filter((part) => part.what === 'network')
        .map((part) => part.called)
        .join(' ')}`,
    );
  if (on === 'sandbox' && !processes.some((one) => one.holds.includes('gate')))
    lacks.push(`${name} has no way to its network`);
  const servers = processes.filter((one) => one.isServer);
  if (on === 'sandbox' && servers.length !== 1) lacks.push(`${name} has ${servers.length} servers`);
  return lacks;
}

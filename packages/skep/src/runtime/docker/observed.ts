import {
  anything,
  bool,
  listOf,
  members,
  nullish,
  optional,
  recordOf,
  text,
  wholeNumber,
} from '@skep/core/settings/shape.ts';
import type { Observed, WorkloadState } from '../runtime.ts';
import { readAnswer } from './read-answer.ts';

const inspectShape = members({
  Name: text,
  Created: text,
  State: members({
    Status: text,
    Running: bool,
    ExitCode: wholeNumber(),
    OOMKilled: nullish(bool),
    StartedAt: optional(text),
  }),
  Config: members({ Image: text, Labels: nullish(recordOf(text)) }),
});

/** Decodes `GET /containers/{id}/json`. */
export function observedContainer(body: unknown): Observed {
  const { Name, Created, State, Config } = readAnswer(inspectShape, body);
  const state = workloadState(State.Status, State.Running);
  const startedAt = new Date(State.StartedAt ?? 0);
  return {
    name: Name.replace(/^\//, ''),
    state,
    ...(state === 'exited' ? { exitCode: State.ExitCode } : {}),
    // Also true where one process inside was killed and the server went on.
    ...(state === 'exited' && State.OOMKilled === true && State.ExitCode !== 0
      ? ({ exceeded: 'memory' } as const)
      : {}),
    reference: Config.Image,
    labels: Config.Labels ?? {},
    createdAt: new Date(Created),
    // The engine writes year 1 for "never".
    ...(startedAt.getUTCFullYear() > 1970 ? { startedAt } : {}),
  };
}

const listShape = listOf(members({ Id: text }));

/** Ids of `GET /containers/json` and `GET /images/json`. */
export function listedIds(body: unknown): string[] {
  return readAnswer(listShape, body).map((item) => item.Id);
}

/** `paused` and `restarting` containers hold their process; `dead` and `removing` ones have none. */
function workloadState(status: string, running: boolean): WorkloadState {
  if (running) return 'running';
  return status === 'created' || status === 'configured' ? 'created' : 'exited';
}

const imageShape = members({
  Id: text,
  Os: nullish(text),
  Architecture: nullish(text),
  Config: members({
    ExposedPorts: nullish(recordOf(anything)),
    Labels: nullish(recordOf(text)),
    Volumes: nullish(recordOf(anything)),
    User: nullish(text),
  }),
});

export type ObservedImage = ReturnType<typeof observedImage>;

/** Decodes `GET /images/{name}/json`; ports are those of EXPOSE for TCP, ascending. */
export function observedImage(body: unknown) {
  const { Id, Os, Architecture, Config } = readAnswer(imageShape, body);
  const ports = Object.keys(Config.ExposedPorts ?? {}).flatMap((port) => {
    const number = /^(\d+)(?:\/tcp)?$/.exec(port)?.[1];
    return number === undefined ? [] : [Number(number)];
  });
  return {
    id: Id,
    /** As images name them: `linux`, `amd64`. */
    os: Os ?? undefined,
    architecture: Architecture ?? undefined,
    exposedPorts: ports.toSorted((a, b) => a - b),
    labels: Config.Labels ?? {},
    volumes: Object.keys(Config.Volumes ?? {}).toSorted(),
    asRoot: /^(?:(?:root|0+)(?::.*)?)?$/.test(Config.User ?? ''),
  };
}

const networksShape = listOf(
  members({
    Id: text,
    Name: text,
    Created: text,
    Labels: nullish(recordOf(text)),
    Options: nullish(recordOf(text)),
    IPAM: nullish(members({ Config: nullish(listOf(members({ Subnet: optional(text) }))) })),
  }),
);

export type ObservedNetwork = ReturnType<typeof observedNetworks>[number];

/** Decodes `GET /networks`, in one order for all callers: the oldest first, of equal age the smallest id. */
export function observedNetworks(body: unknown) {
  return readAnswer(networksShape, body)
    .map(({ Id, Name, Created, Labels, Options, IPAM }) => ({
      id: Id,
      name: Name,
      // Engines give that many digits, and networks made at once differ in nothing else.
      createdNs: nanoseconds(Created),
      labels: Labels ?? {},
      /** The device that a macvlan stands on. */
      parent: Options?.['parent'],
      /** As the engine writes it; the first one. */
      subnet: IPAM?.Config?.[0]?.Subnet,
    }))
    .toSorted((a, b) => (a.createdNs < b.createdNs || (a.createdNs === b.createdNs && a.id < b.id) ? -1 : 1));
}

/** Since 1970. Go's RFC 3339 times leave out trailing zeros, in any time zone: they do not sort as text. */
function nanoseconds(time: string): bigint {
  const fraction = /\.(\d{1,9})/.exec(time)?.[1] ?? '';
  return BigInt(Math.floor(Date.parse(time) / 1000)) * 1_000_000_000n + BigInt(fraction.padEnd(9, '0'));
}

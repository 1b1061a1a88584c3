import { bool, listOf, members, nullish, text } from '@skep/core/settings/shape.ts';
import type { Limits } from '../../permissions/limits.ts';
import type { RuntimeInfo } from '../runtime.ts';
import { endpointText, type Endpoint } from './endpoint.ts';
import { readAnswer } from './read-answer.ts';

const infoShape = members({
  ID: nullish(text),
  Name: nullish(text),
  ServerVersion: text,
  SecurityOptions: nullish(listOf(text)),
  DockerRootDir: nullish(text),
  Rootless: nullish(bool),
});

interface Asked {
  readonly endpoint: Endpoint;
  readonly podman: boolean;
  readonly platform: NodeJS.Platform;
}

/** Who an engine is, by its answer to `GET /info`. Fails with `runtime/engine-refused` where it does not say. */
export function engineInfo(answer: unknown, { endpoint: at, podman, platform }: Asked): RuntimeInfo {
  const info = readAnswer(infoShape, answer);
  const endpoint = endpointText(at);
  // Podman has no id: it leaves it out, or draws one for each answer. Each user has an engine of their own on a machine.
  const place = [info.Name, podman ? info.DockerRootDir : ''].filter(Boolean).join(':');
  const id = (podman ? '' : info.ID) || place || endpoint;
  const isMapped =
    info.Rootless === true ||
    info.SecurityOptions?.some((one) => /\bname=(?:rootless|userns)\b/.test(one)) === true;
  const mapsUsers = isMapped || at.kind !== 'unix' || platform !== 'linux';
  return { kind: 'docker', id, version: info.ServerVersion, endpoint, mapsUsers };
}

/** Engines that do not say so can. */
const abilitiesShape = members({
  MemoryLimit: nullish(bool),
  PidsLimit: nullish(bool),
  CpuCfsQuota: nullish(bool),
  Rootless: nullish(bool),
  CgroupVersion: nullish(text),
});

/** A phrase for each limit that an engine would leave out and say so to nobody, by its answer to `GET /info`. */
export function unheldLimits(answer: unknown, { memory, pids, cpus, disk }: Limits): readonly string[] {
  const can = readAnswer(abilitiesShape, answer);
  // Only Podman says so: without root it leaves out limits of processes, and those of the first control groups (tried with 4.3).
  const rootless = can.Rootless === true;
  const grouped = !(rootless && can.CgroupVersion === '1');
  const wanted = [
    ['memory', memory, grouped && can.MemoryLimit !== false],
    ['processes', pids, grouped && can.PidsLimit !== false],
    ['processor time', cpus, grouped && can.CpuCfsQuota !== false],
  ] as const;
  return [
    ...wanted.flatMap(([what, limit, able]) =>
      limit > 0 && !able ? [`its ${what} cannot be limited by this engine (control groups)`] : [],
    ),
    ...(disk > 0 && rootless ? ['its files cannot be limited by this engine, which runs without root'] : []),
  ];
}

const machineShape = members({ Architecture: nullish(text) });

/** As images name processors, by what kernels call them. */
const ARCHITECTURES: Readonly<Record<string, string>> = {
  x86_64: 'amd64',
  aarch64: 'arm64',
  armv7l: 'arm',
  armv6l: 'arm',
  i386: '386',
  i686: '386',
};

/** The processors of an engine, as images name them, by its answer to `GET /info`; undefined where it does not say. */
export function architectureOf(answer: unknown): string | undefined {
  const { Architecture } = readAnswer(machineShape, answer);
  return Architecture ? (ARCHITECTURES[Architecture] ?? Architecture) : undefined;
}

const runtimeShape = members({ DefaultRuntime: nullish(text) });

/**
 * True where containers have the kernel's network, so that one can join that of another, by the engine's answer to `GET /info`.
 * Others than these have one of their own inside.
 */
export function sharesNetworks(answer: unknown): boolean {
  const { DefaultRuntime } = readAnswer(runtimeShape, answer);
  return ['runc', 'crun', 'io.containerd.runc.v2'].includes(DefaultRuntime ?? '');
}

/**
 * What is to be told of an image for other processors than the engine's, by the engine's answer to `GET /info`; undefined
 * where both are the same, or the engine does not say.
 */
export function otherArchitecture(
  answer: unknown,
  { reference, architecture }: { readonly reference: string; readonly architecture: string },
): string | undefined {
  const own = architectureOf(answer);
  if (own === undefined || own === architecture) return undefined;
  return `image "${reference}" is for ${architecture}, and the engine runs ${own}: it starts only where the engine emulates ${architecture}, and slowly`;
}

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { z } from 'zod';
import type { WorkloadSpec } from '../runtime.ts';
import { userFile } from '../user-file.ts';

const specShape = z.object({
  createdAt: z.iso.datetime(),
  spec: z.object({
    name: z.string(),
    reference: z.string(),
    args: z.array(z.string()),
    env: z.record(z.string(), z.string()),
    labels: z.record(z.string(), z.string()),
    stdio: z.boolean(),
    mounts: z.array(z.object({ source: z.string(), target: z.string(), readOnly: z.boolean() })),
    network: z.string(),
    ports: z.array(z.object({ hostIp: z.string(), hostPort: z.number(), containerPort: z.number() })),
    privileged: z.boolean(),
    user: z.string().exactOptional(),
  }),
});

export interface SavedSpec {
  readonly spec: WorkloadSpec;
  readonly createdAt: Date;
}

export function encodeSpec(saved: SavedSpec): string {
  return `${JSON.stringify({ createdAt: saved.createdAt.toISOString(), spec: saved.spec })}\n`;
}

/** The workload saved in this file; undefined when there is none. Throws `workload/state-unreadable`. */
export async function readSpec(file: string): Promise<SavedSpec | undefined> {
  const text = await userFile(file);
  if (text === undefined) return undefined;
  try {
    const { spec, createdAt } = specShape.parse(JSON.parse(text));
    return { spec, createdAt: new Date(createdAt) };
  } catch (cause) {
    throw new SkepError('workload/state-unreadable', { message: `"${file}" is not a saved workload`, cause });
  }
}

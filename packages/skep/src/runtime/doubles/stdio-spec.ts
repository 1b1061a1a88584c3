import type { WorkloadSpec } from '../runtime.ts';

/** A workload that speaks over stdio and asks for nothing; tests say what they change of it. */
export const STDIO_SPEC: WorkloadSpec = {
  name: 'a1',
  reference: 'fake:1',
  args: [],
  env: {},
  labels: {},
  stdio: true,
  mounts: [],
  network: 'bridge',
  ports: [],
  privileged: false,
};

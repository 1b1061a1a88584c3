import { createHash } from 'node:crypto';
import type { RuntimeEnvironment } from '../environment.ts';
import { userFile } from '../user-file.ts';
import { workloadsDirectory } from './places.ts';

/** Identity of this user's sandbox on this machine: a home directory shared by machines has one for each. */
export async function sandboxId(environment: RuntimeEnvironment): Promise<string> {
  const machine = ((await userFile('/etc/machine-id')) ?? '').trim();
  const hash = createHash('sha256').update(`skep\0${machine}\0${workloadsDirectory(environment)}`);
  return `sandbox-${hash.digest('hex').slice(0, 16)}`;
}

import { tmpdir } from 'node:os';
import type { Runtime } from '../runtime.ts';
import { findKubernetes } from './find-cluster.ts';

/** The runtime that a command would open with these variables. */
export async function openTestRuntime(
  env: Readonly<Record<string, string>>,
  owner = 'a1b2c3d4e5f60718',
): Promise<Runtime> {
  const finding = await findKubernetes(
    {
      env,
      home: tmpdir(),
      platform: 'linux',
      execPath: process.execPath,
      dataDir: tmpdir(),
      cacheDir: tmpdir(),
      owner,
      randomId: () => 'unused',
    },
    undefined,
    true,
  );
  if ('found' in finding) return finding.found;
  throw finding.error ?? new TypeError(JSON.stringify(finding.refusals));
}

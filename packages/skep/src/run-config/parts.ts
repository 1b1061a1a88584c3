import type { PartSettings } from '@skep/proxy/steps/parts.ts';
import { currentAuthz } from './authz.ts';
import type { RunConfig } from './run-config.ts';
import { currentTools } from './tools.ts';

/** What comes with settings in the chain of a workload's proxy. Fails as its parts do. */
export async function partsOf(config: RunConfig): Promise<PartSettings> {
  const [tools, authz] = await Promise.all([currentTools(config), currentAuthz(config)]);
  return { tools, authz };
}

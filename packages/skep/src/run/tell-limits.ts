import { isLoopback } from '@skep/proxy/call/loopback.ts';
import type { Context } from '../cli/context.ts';
import { notEnforced } from '../permissions/not-enforced.ts';
import { profileMounts } from '../permissions/profile.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { Runtime } from '../runtime/runtime.ts';

/** Says in one line each what the person might take for granted about a workload and is not so. */
export async function tellLimits(config: RunConfig, runtime: Runtime, context: Context): Promise<void> {
  const { name, permission_profile: profile, sandbox_user: user } = config;
  const mounts = profileMounts(profile, '/');
  const cautions = await runtime.cautions({ name, mounts, ...(user === undefined ? {} : { user }) });
  for (const limit of [...notEnforced(profile, runtime), ...cautions]) {
    context.terminal.err(`Warning: ${printable(`${name}: ${limit}`)}\n`);
  }
}

/** Warns of a proxy that other machines reach: web pages are kept out on every address; programs are not. */
export function warnOpen(host: string, terminal: Pick<Context['terminal'], 'err'>): void {
  if (isLoopback(host)) return;
  terminal.err(
    `Warning: listening on ${host}: whoever reaches this address from another machine can use the server without signing in\n`,
  );
}

import type { ToolCount } from '@skep/proxy/call/tool-counts.ts';
import { silentLog } from '@skep/core/log/log.ts';
import type { Context } from './cli/context.ts';
import { secretsOfWorkloads } from './cli/open-host.ts';
import { Elsewhere } from './runtime/elsewhere.ts';
import type { Runtime } from './runtime/runtime.ts';
import { ELSEWHERE } from './settings/identity.ts';
import type { MemoryRuntime } from './runtime/doubles/memory-runtime.ts';
import { Host } from './supervisor/host.ts';
import { clientsUnderTest } from './supervisor/clients.fixture.ts';
import { silentProxy } from './supervisor/silent-proxy.fixture.ts';
import { ownerOf } from './supervisor/owner.ts';

interface HostUnderTest {
  readonly context: Context;
  readonly machine: {
    readonly greet?: (name: string) => Promise<unknown>;
    readonly tools?: readonly object[];
    readonly toolCounts?: readonly ToolCount[];
    readonly sandbox?: MemoryRuntime;
  };
  readonly runtime: MemoryRuntime;
  readonly version: string;
}

/** What hosts workloads in a test: for real, on a runtime in memory, behind proxies that listen nowhere. */
export function openHostUnderTest({ context, machine, runtime, version }: HostUnderTest): Host {
  const { places, clock, random, fetch, self, isAlive, home } = context;
  const greet = machine.greet ?? (async () => ({ name: 'fake', version: '1' }));
  return new Host({
    places,
    home,
    clock,
    random,
    fetch,
    self,
    isAlive,
    openRuntime: async (reference) => runtimeOf(reference, machine, runtime),
    connectRuntime: async (reference) => runtimeOf(reference, machine, runtime),
    ...secretsOfWorkloads(context, silentLog),
    startProxy: async (options) => silentProxy(options, greet, machine),
    version,
    owner: ownerOf(places.stateDir),
    terminate() {},
    log: silentLog,
    ...(context.policy && { policy: context.policy }),
    openWorkloadLog: async () => ({ log: silentLog, close() {} }),
    clients: clientsUnderTest(context),
  });
}

/** The machine's sandbox for what belongs there, else its engine. */
export function runtimeOf(
  reference: { readonly kind: string } | undefined,
  { sandbox }: HostUnderTest['machine'],
  engine: MemoryRuntime,
): Runtime {
  if (reference?.kind === ELSEWHERE) return new Elsewhere();
  return reference?.kind === 'sandbox' && sandbox ? sandbox : engine;
}

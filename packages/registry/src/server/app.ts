import type { Log } from '@skep/core/log/log.ts';
import { OPEN_SIGN_IN, openSignIn, SignInSlot } from '../api/sign-in/sign-in.ts';
import type { RegistryConfig } from '../config/load.ts';
import { ReadEngine } from '../engine/read-engine.ts';
import { openStore } from '../store/open-store.ts';
import { tracedStore } from '../telemetry/traces.ts';
import { openCatalogue } from './catalogue.ts';
import { closeServer, drain } from '@skep/core/fetch/listen.ts';
import { assertFree, listenOn } from './listen.ts';
import { apiContext, internalListener, publicListener } from './listeners.ts';
import { openOperations } from './operations.ts';
import { reload } from './reload.ts';
import type { AppOptions } from './app-options.ts';
import type { Running } from './running.ts';
import { holdTickShape } from './tick-shape.ts';

/** A running registry. */
export type App = Awaited<ReturnType<typeof startApp>>;

/** What requests that run may take at a stop; longer than any request may take by the other limits. */
const DRAIN_MS = 30_000;

/**
 * Starts in an order in which nothing is served half ready (docs/behaviour/registry.md#start-and-stop): readiness
 * answers 503 from the first moment, the store is brought in line with the configuration, every source is loaded, and
 * only then the public listener opens. A failure at any step takes back the steps before it, also a store file that
 * this start has made.
 */
export async function startApp(options: AppOptions) {
  const { config, addresses, log, clock, random } = options;
  const engine = new ReadEngine(config.registries);
  const signIn = new SignInSlot(await openSignIn(config.auth, { clock, random, log }), clock);
  const running: Running = { config, limits: config.limits, engine, signIn, isReady: false };
  const context = apiContext(options, running);
  const closers: (() => unknown)[] = [() => signIn.close(), holdTickShape()];
  try {
    await assertFree(addresses.public, '--address');
    // Operators' probes carry no token, and what they ask for by mistake is simply not there.
    const internal = internalListener(options, { ...context, signIn: () => OPEN_SIGN_IN });
    closers.push(() => closeServer(internal));
    const internalUrl = await listenOn(internal, addresses.internal, '--internal-address');
    const store = await openStore(options.storePlace, { clock, log });
    running.store = store;
    closers.push(() => (running.urls === undefined ? store.discard() : store.close()));
    await store.forgetLeases?.();
    const operations = await openOperations({ ...options, engine, store });
    running.operations = operations;
    closers.push(() => operations.close());
    const { tracing } = operations;
    running.store = tracing === undefined ? store : tracedStore(store, tracing);
    const catalogue = await openCatalogue({ ...options, engine, store: running.store, operations });
    running.catalogue = catalogue;
    closers.push(() => catalogue.close());
    options.releaseMemory();
    const open = publicListener(options, running, context, operations);
    closers.push(() => drain(open, { clock, graceMs: DRAIN_MS }));
    const urls = { public: await listenOn(open, addresses.public, '--address'), internal: internalUrl };
    Object.assign(running, { urls, isReady: true });
    let closing: Promise<void> | undefined;
    const close = async (): Promise<void> => {
      running.isReady = false;
      await running.reloading;
      await closeAll(closers, log);
    };
    return {
      /** Base URLs without trailing slash. */
      urls,
      engine,
      /**
       * Takes over a new configuration, or fails as a start would, changing nothing. Resolves with the keys of what has
       * changed in it and needs a restart. One at a time.
       */
      reload: (next: RegistryConfig): Promise<readonly string[]> => reload(next, options, running),
      /** Asks every identity provider once, so that a wrong address shows in the log before the first caller meets it. */
      askProviders: (): void => signIn.askProviders(),
      /** Opens files anew that a log rotator has moved. */
      reopenLogs: (): Promise<void> => operations.reopenAudit(),
      /**
       * Stops in an order in which nothing that runs loses what it needs (docs/behaviour/registry.md#start-and-stop): not
       * ready, no new connections, up to 30 s for requests that run, synchronisations, audit log and telemetry, store.
       * Idempotent.
       */
      close: (): Promise<void> => (closing ??= close()),
    };
  } catch (error) {
    await closeAll(closers, log);
    throw error;
  }
}

/** Closes in the reverse order of opening. One that fails does not keep the others open. */
async function closeAll(closers: readonly (() => unknown)[], log: Log): Promise<void> {
  for (const close of closers.toReversed()) {
    try {
      await close();
    } catch (error) {
      log.error({ err: error }, 'closing failed');
    }
  }
}

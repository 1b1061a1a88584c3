import type { Places } from '@skep/core/files/places.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { whatIsKept } from './address.ts';
import type { Greeting } from './protocol.ts';
import { serve, type ServerOptions } from './server.ts';

/** What a test says of its supervisor; the rest is as it usually is. */
export type TestServer = Partial<ServerOptions> & {
  readonly places: Places;
  readonly host: ServerOptions['host'];
  readonly signal: AbortSignal;
  readonly greets?: Partial<Greeting>;
};

/** Serves the supervisor's socket in this process until the signal aborts; `over` resolves when it has ended. */
export async function testServer({
  places,
  greets,
  ...options
}: TestServer): Promise<{ over: Promise<void> }> {
  const self = { pid: process.pid, started: 'me' };
  const kept = whatIsKept(places);
  const done = Promise.resolve();
  return new Promise((resolve, reject) => {
    const over = serve({
      places,
      platform: 'linux',
      uid: process.getuid?.(),
      owner: { ...self, state: kept.state },
      greeting: { skep: 'supervisor', version: '1.0.0', ...self, ...kept, ...greets },
      resume: {
        settled: done,
        complete: done,
        again: () => done,
        finish() {},
        isBusy: () => false,
        hasLeft: async () => false,
      },
      run: () => Promise.reject(new SkepError('supervisor/not-here')),
      lingerMs: 60_000,
      isTheOne: async () => true,
      onOpen: () => resolve({ over }),
      log: silentLog,
      ...options,
    });
    over.catch(reject);
  });
}

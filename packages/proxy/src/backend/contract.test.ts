import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { started, TIMEOUT_MS } from '../doubles/started-mux.ts';
import { portContract } from './contract.ts';
import { Conversations } from './http/conversations.ts';

portContract('stdio', async (script) => {
  const { mux, server, clock } = await started(script);
  return { port: mux, server, clock, [Symbol.asyncDispose]: async () => mux.close() };
});

for (const kind of ['http', 'sse'] as const) {
  portContract(kind === 'http' ? 'streamable HTTP' : 'SSE', async (script) => {
    const server = await scriptedHttpServer(kind, script);
    const clock = manualClock();
    const port = new Conversations({
      ...server.backend,
      clock,
      log: silentLog,
      requestTimeoutMs: TIMEOUT_MS,
      skepVersion: '1',
    });
    return {
      port,
      server,
      clock,
      async [Symbol.asyncDispose]() {
        port.close();
        await server[Symbol.asyncDispose]();
      },
    };
  });
}

import { silentLog } from '@skep/core/log/log.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { ownAuthority } from '../doubles/own-authority.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { started, TIMEOUT_MS } from '../doubles/started-mux.ts';
import { portContract } from './contract.ts';
import { Conversations } from './http/conversations.ts';
import { Upstream } from './http/upstream.ts';

portContract('stdio', async (script) => {
  const { mux, server, clock } = await started(script);
  return { port: mux, server, clock, [Symbol.asyncDispose]: async () => mux.close() };
});

const authority = ownAuthority();

for (const [name, kind, tls, isReplicated] of [
  ['streamable HTTP', 'http', undefined, false],
  ['streamable HTTP, served by many replicas', 'http', undefined, true],
  ['SSE', 'sse', undefined, false],
  ['remote streamable HTTP', 'http', authority, false],
  ['remote SSE', 'sse', authority, false],
] as const) {
  portContract(name, async (script) => {
    const server = await scriptedHttpServer(kind, script, tls);
    const clock = manualClock();
    const port = new Conversations({
      ...server.backend,
      upstream: new Upstream(server.backend, clock),
      clock,
      log: silentLog,
      requestTimeoutMs: TIMEOUT_MS,
      skepVersion: '1',
      isReplicated,
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

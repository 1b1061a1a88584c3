import { spawn } from 'node:child_process';
import { silentLog } from '@skep/core/log/log.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { httpServer, listenOn } from '@skep/proxy/listener.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { startProxy } from '@skep/proxy/start.ts';
import { frontRequests } from '../../packages/skep/src/supervisor/front-requests.ts';
import { frontUrl } from '../../packages/skep/src/supervisor/front-state.ts';

// The subject: our proxy in front of the same stdio server, with the settings of `skep run`, on its own port and behind the
// front door of the same process. Prints both URLs in one line.
const [file = '', ...args] = process.argv.slice(2);
const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const { stdin, stdout } = child;
const host = '127.0.0.1';
const proxy = await startProxy({
  name: 'bench',
  host,
  port: 0,
  backend: { kind: 'stdio', attach: () => Promise.resolve({ stdin, stdout, close() {} }) },
  trustProxyHeaders: false,
  ...valuesOf(proxySettings, new Map()),
  graceMs: 30_000,
  skepVersion: '1',
  log: silentLog,
});
const door = httpServer();
const port = await listenOn(door, host, 0);
door.on(
  'request',
  frontRequests({
    host,
    port,
    find: (name) => (name === 'bench' ? proxy : undefined),
    statusOf: () => Promise.resolve(undefined),
    pid: process.pid,
    log: silentLog,
  }),
);
console.log(`${proxy.url} ${frontUrl(port, 'bench', proxy.url)}`);
process.on('SIGTERM', () => {
  child.kill();
  process.exit(0);
});

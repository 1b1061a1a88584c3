import { spawn } from 'node:child_process';
import { silentLog } from '@skep/core/log/log.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { startProxy } from '@skep/proxy/start.ts';

// The subject: our proxy in front of the same stdio server, with the settings of `skep run`. Prints its URL.
const [file = '', ...args] = process.argv.slice(2);
const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const { stdin, stdout } = child;
const proxy = await startProxy({
  name: 'bench',
  host: '127.0.0.1',
  port: 0,
  backend: { kind: 'stdio', attach: () => Promise.resolve({ stdin, stdout, close() {} }) },
  trustProxyHeaders: false,
  ...valuesOf(proxySettings, new Map()),
  graceMs: 30_000,
  skepVersion: '1',
  log: silentLog,
});
console.log(proxy.url);
process.on('SIGTERM', () => {
  child.kill();
  process.exit(0);
});

import { silentLog } from '@skep/core/log/log.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { startProxy } from '@skep/proxy/start.ts';

// The subject: our proxy in front of a server that speaks HTTP itself, with the settings of `skep run`. Prints its URL.
const [there = ''] = process.argv.slice(2);
const proxy = await startProxy({
  name: 'bench',
  host: '127.0.0.1',
  port: 0,
  backend: { kind: 'http', target: new URL(there) },
  trustProxyHeaders: false,
  ...valuesOf(proxySettings, new Map()),
  skepVersion: '1',
  log: silentLog,
});
console.log(proxy.url);
process.on('SIGTERM', () => process.exit(0));

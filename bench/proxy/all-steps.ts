import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:http';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { AUDIENCE, ISSUER, signed, signingKey } from '@skep/auth/token/tokens.fixture.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { valuesOf } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { startProxy } from '@skep/proxy/start.ts';
import { auditSettings } from '@skep/proxy/steps/audit/settings.ts';

// The subject: our proxy in front of the same stdio server with everything that calls can pass: sign-in with a JWT, audit
// into a file, a filter of tools, telemetry and 20 policies. Prints its URL and a token in one line.
const [file = '', ...args] = process.argv.slice(2);
const child = spawn(file, args, { stdio: ['pipe', 'pipe', 'inherit'] });
const { stdin, stdout } = child;
const folder = mkdtempSync(join(tmpdir(), 'skep-bench-'));
const key = await signingKey('k1');
const beside = createServer((req, res) => {
  req.resume();
  const body = req.url === '/jwks' ? { keys: [key.jwk] } : {};
  res.writeHead(200, { 'Content-Type': 'application/json' }).end(JSON.stringify(body));
});
beside.listen(0, '127.0.0.1');
await once(beside, 'listening');
const address = beside.address();
const url = `http://127.0.0.1:${typeof address === 'object' ? address?.port : ''}`;
const now = Math.floor(Date.now() / 1_000);
const token = await signed(key, { iat: now, exp: now + 86_400 });
const policies = Array.from(
  { length: 20 },
  (_, at) =>
    `permit(principal, action == Action::"call_tool", resource == Tool::"${at === 19 ? 'echo' : at}");`,
);
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
  signIn: {
    issuer: ISSUER,
    jwksUrl: `${url}/jwks`,
    audience: AUDIENCE,
    allowHttp: true,
    allowPrivateIP: true,
  },
  parts: {
    audit: auditSettings({}, join(folder, 'audit.log')),
    tools: { filter: ['echo'] },
    authz: { document: { version: '1.0', type: 'cedarv1', cedar: { policies, entities_json: '[]' } } },
    telemetry: {
      serviceName: 'bench',
      serviceVersion: '1',
      endpoint: { url },
      headers: {},
      attributes: {},
      tracing: { sampling: 0.1 },
      metrics: 'on',
      scrapes: true,
      legacyNames: true,
      environment: {},
    },
  },
});
console.log(`${proxy.url} ${token}`);
process.on('SIGTERM', () => {
  child.kill();
  rmSync(folder, { recursive: true });
  process.exit(0);
});

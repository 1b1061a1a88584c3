import { MACHINE, METADATA, PRIVATE, PUBLIC, PUBLIC_6 } from '../fixtures/small-internet.ts';
import { LOOPBACK_RESOLVER } from '../fixtures/loopback-resolver.ts';
import type { Attempt } from './attempt.ts';

/** What the isolated server of these attempts may reach: `api.example` at 80 and 443. Names of its internet. */
export const NAMES = {
  'api.example': [[PUBLIC]],
  'other.example': [[PUBLIC]],
  'intern.example': [[PRIVATE]],
  'metadata.example': [[METADATA]],
  'loopback.example': [['127.0.0.1']],
  'rebound.example': [[PUBLIC], [PRIVATE]],
  'both.example': [[PUBLIC, PRIVATE]],
  'mapped.example': [[`::ffff:${PRIVATE}`]],
};

/** A request as a program makes it that knows of the proxy where there is one; the servers of that internet answer ` at `. */
const loads = (name: string, url: string): Attempt => ({
  name,
  by: 'node',
  code: `fetch(${JSON.stringify(url)}, { signal: AbortSignal.timeout(4000) }).then((answer) => answer.text()).then((text) => / at /.test(text) && got(text)).catch(() => {})`,
});

/** A plain connection to an address that pays no heed to a proxy. */
const connects = (name: string, host: string, port: number): Attempt => ({
  name,
  by: 'node',
  code: `const socket = net.connect({ host: ${JSON.stringify(host)}, port: ${port} }, () => { got('connected'); socket.destroy() }); socket.setTimeout(2000, () => socket.destroy()).on('error', () => {})`,
});

/** Speaks with the proxy itself where there is one, else with the server, in words of its own. */
const says = (name: string, first: string, then: string): Attempt => ({
  name,
  by: 'node',
  code: `const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);
const socket = net.connect(proxy ? { host: proxy.hostname, port: Number(proxy.port) } : { host: ${JSON.stringify(PUBLIC)}, port: 8080 });
let text = '';
socket.setTimeout(3000, () => socket.destroy()).on('error', () => {}).on('close', () => / at /.test(text) && got(text.split('\\r\\n\\r\\n').at(-1)));
if (proxy) socket.write(${JSON.stringify(first)});
else socket.write(${JSON.stringify(then)});
socket.on('data', (data) => { text += data; if (proxy && / 200 /.test(text) && !/ at /.test(text)) { text = ''; socket.write(${JSON.stringify(then)}) } });`,
});

const ask = (host: string): string => `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n\r\n`;

/** Each gets there on a machine that lets everything out, and no further than its gateway where it is isolated. */
export const NETWORK_ATTEMPTS: readonly Attempt[] = [
  loads('loads from a host that is not allowed', 'http://other.example/'),
  loads('loads from a port that is not allowed', 'http://api.example:8080/'),
  loads('loads from an allowed host by its address', `http://${PUBLIC}/`),
  loads('loads from an address in another spelling', 'http://1572395042/'),
  loads('loads over IPv6 by address', `http://[${PUBLIC_6}]/`),
  loads('loads from a private address', `http://${PRIVATE}/`),
  loads('loads from a name of a private address', 'http://intern.example/'),
  loads('loads from a private address that is mapped into IPv6', `http://[::ffff:${PRIVATE}]/`),
  loads('loads what a cloud tells its machines', `http://${METADATA}/`),
  loads('loads it by a name of its own', 'http://metadata.example/'),
  loads('is led there by an allowed host', `http://api.example/to?http://${METADATA}/`),
  loads('is led to a private address by an allowed host', `http://api.example/to?http://${PRIVATE}/`),
  loads('is led to another port by an allowed host', 'http://api.example/to?http://api.example:8080/'),
  loads('loads from a name of a public and a private address', 'http://both.example/'),
  {
    name: 'has a name resolve to something else the second time',
    by: 'node',
    code: `const ask = () => fetch('http://rebound.example/', { signal: AbortSignal.timeout(4000), headers: { connection: 'close' } }).then((answer) => answer.text()).catch(() => ''); ask().then(ask).then((text) => / at ${PRIVATE.replaceAll('.', '\\.')} /.test(text) && got(text))`,
  },
  connects('connects to an allowed host by its address', PUBLIC, 443),
  connects('connects to another port of it', PUBLIC, 8080),
  loads('loads from a service of the machine', `http://${MACHINE}:8088/`),
  connects('connects to a service of the machine', MACHINE, 8088),
  connects('connects to a private address', PRIVATE, 80),
  connects('connects over IPv6', PUBLIC_6, 443),
  connects('connects to what a cloud tells its machines', METADATA, 80),
  says('tunnels to a port that is not allowed', 'CONNECT api.example:8080 HTTP/1.1\r\nHost: api.example:8080\r\n\r\n', ask('api.example:8080')), // prettier-ignore
  says('tunnels to an address', `CONNECT ${PUBLIC}:8080 HTTP/1.1\r\nHost: api.example\r\n\r\n`, ask('api.example')), // prettier-ignore
  says('tunnels to a host that is not allowed', 'CONNECT other.example:80 HTTP/1.1\r\nHost: api.example\r\n\r\n', ask('other.example')), // prettier-ignore
  says('names one host in the address and another in Host', `GET http://other.example:8080/ HTTP/1.1\r\nHost: api.example\r\nConnection: close\r\n\r\n`, ask('other.example')), // prettier-ignore
  says('smuggles a second request behind a first one', `POST http://api.example/ HTTP/1.1\r\nHost: api.example\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET http://other.example/ HTTP/1.1\r\nHost: other.example\r\nConnection: close\r\n\r\n`, ask('other.example')), // prettier-ignore
  {
    name: 'names a host in TLS that is not the one of its tunnel',
    by: 'node',
    code: `const tls = require('node:tls'); const proxy = process.env.HTTP_PROXY && new URL(process.env.HTTP_PROXY);
const socket = net.connect(proxy ? { host: proxy.hostname, port: Number(proxy.port) } : { host: ${JSON.stringify(PUBLIC)}, port: 443 });
const secure = () => { const inner = tls.connect({ socket, servername: 'other.example', rejectUnauthorized: false }, () => inner.write(${JSON.stringify(ask('other.example'))})); inner.on('data', (data) => / at /.test(data) && got(String(data).split('\\r\\n\\r\\n').at(-1))).on('error', () => {}) };
socket.setTimeout(3000, () => socket.destroy()).on('error', () => {});
if (proxy) { socket.write('CONNECT api.example:443 HTTP/1.1\\r\\nHost: api.example:443\\r\\n\\r\\n'); socket.once('data', secure) } else secure();`,
  },
  {
    name: 'asks a name server of its own',
    by: 'node',
    code: `const names = new (require('node:dns').Resolver)({ timeout: 1500, tries: 1 }); names.setServers([${JSON.stringify(PUBLIC)}]); names.resolve4('other.example', (error, found) => found && got(found))`,
  },
  {
    name: 'asks the name server on the loopback of the machine',
    by: 'node',
    code: `const names = new (require('node:dns').Resolver)({ timeout: 1500, tries: 1 }); names.setServers(['${LOOPBACK_RESOLVER}']); names.resolve4('data.tunnel.example', (error, found) => found && got(found))`,
  },
  {
    name: 'finds where a name that is not allowed leads',
    by: 'node',
    code: `require('node:dns').resolve4('intern.example', (error, found) => found?.includes(${JSON.stringify(PRIVATE)}) && got(found))`,
  },
  {
    name: 'asks for other records than addresses',
    by: 'node',
    code: `const names = new (require('node:dns').Resolver)({ timeout: 1500, tries: 1 }); names.resolveTxt('data.tunnel.example', (error) => error?.code === 'ENOTFOUND' && !process.env.HTTP_PROXY && got('asked'))`,
  },
  {
    name: 'sends datagrams',
    by: 'node',
    code: `const socket = require('node:dgram').createSocket('udp4'); const question = Buffer.from('000101000001000000000000036170690765786d61706c650000010001'.replace('0765786d61706c65', '076578616d706c65'), 'hex'); socket.on('message', () => { got('answered'); socket.close() }).on('error', () => socket.close()); socket.send(question, 53, ${JSON.stringify(PUBLIC)}, (error) => error && process.exit()); setTimeout(() => process.exit(), 1500)`,
  },
];

/** From a container: past other workloads of the same engine, and through what its gateway may have open. `f.other` is one's address, `f.door` the port of another's proxy. */
export const CONTAINER_ATTEMPTS: readonly Attempt[] = [
  {
    name: 'asks another workload past its proxy',
    by: 'node',
    code: `const socket = net.connect({ host: f.other, port: 3000 }, () => socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')); socket.setTimeout(3000, () => socket.destroy()).on('error', () => {}).on('data', (data) => /asked as/.test(data) && got('asked'))`,
  },
  {
    name: 'asks it by way of its gateway',
    by: 'node',
    code: `fetch('http://' + f.other + ':3000/', { signal: AbortSignal.timeout(4000) }).then((answer) => answer.text()).then((text) => /asked as/.test(text) && got('asked')).catch(() => {})`,
  },
  {
    name: 'asks the way into an isolated workload',
    by: 'node',
    code: `for (const host of ['127.0.0.1', ${JSON.stringify(MACHINE)}]) { const socket = net.connect({ host, port: Number(f.door) }, () => socket.write('GET / HTTP/1.1\\r\\nHost: localhost\\r\\n\\r\\n')); socket.setTimeout(3000, () => socket.destroy()).on('error', () => {}).on('data', (data) => /^HTTP/.test(data) && got('asked')) }`,
  },
  {
    name: 'finds a port beside the ones that it is told',
    by: 'node',
    code: `const host = process.env.HTTP_PROXY ? new URL(process.env.HTTP_PROXY).hostname : ${JSON.stringify(MACHINE)};
const ports = [8088, 2375, 2376, 3129, 4243, 5432, 6379, 8000, 8080, 9090, 9229, ...Array(1024).keys()].filter((port) => ![0, 53, 80, 443].includes(port));
const next = () => { const port = ports.shift(); if (port === undefined) return; const socket = net.connect({ host, port }, () => { got('port ' + port); process.exit() }); socket.setTimeout(1000, () => socket.destroy()).on('error', () => {}).on('close', next) };
for (let at = 0; at < 64; at += 1) next();`,
  },
];

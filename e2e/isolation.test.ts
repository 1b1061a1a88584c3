import { spawnSync } from 'node:child_process';
import { chownSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import type { Decision } from '@skep/cli/egress/decision.ts';
import type { EgressPolicy } from '@skep/cli/egress/policy.ts';
import type { WorkloadSpec } from '@skep/cli/runtime/runtime.ts';
import {
  LOOPBACK_PORT,
  MACHINE,
  METADATA,
  PRIVATE,
  PUBLIC,
  PUBLIC_6,
  smallInternet,
  type SmallInternet,
} from './fixtures/small-internet.ts';
import { findProgram } from '@skep/cli/runtime/find-program.ts';
import { component, title } from './require.ts';

const sandbox = await component('sandbox');
const asRoot = process.getuid?.() === 0;
const ORDINARY = 1234;
const users: [string, string[], number][] = [
  ['root', [], 0],
  ['an ordinary user', ['setpriv', `--reuid=${ORDINARY}`, `--regid=${ORDINARY}`, '--clear-groups', '--'], ORDINARY], // prettier-ignore
];

const NAMES = {
  'api.example': [[PUBLIC]],
  'other.example': [[PUBLIC]],
  'intern.example': [[PRIVATE]],
  'metadata.example': [[METADATA]],
  'machine.example': [[MACHINE]],
  'loopback.example': [['127.0.0.1']],
  'rebound.example': [[PUBLIC], [PRIVATE]],
  'both.example': [[PUBLIC, PRIVATE]],
  'six.example': [[PUBLIC_6]],
};

/** Asks without knowing of any proxy: over TLS at port 443, plainly at any other. */
const ASK_DIRECTLY = `
const [host, port] = process.argv.slice(1);
const how = { host, port, servername: host, rejectUnauthorized: false };
const socket = port === '443' ? require('tls').connect(how) : require('net').connect(how);
socket.write('GET / HTTP/1.1\\r\\nHost: ' + host + '\\r\\nConnection: close\\r\\n\\r\\n');
socket.setTimeout(5000, () => socket.destroy(new Error('ETIMEDOUT')));
socket.on('error', ({ code, message }) => process.stdout.write(code ?? message)).pipe(process.stdout);`;

/** Asks a name server of the internet itself. */
const ASK_NAMES = `
const socket = require('dgram').createSocket('udp4');
const question = Buffer.from('0001010000010000000000000974756e6e656c2d6d65076578616d706c650000010001', 'hex');
socket.on('error', ({ code }) => { process.stdout.write(code); process.exit(); });
socket.send(question, 53, ${JSON.stringify(PUBLIC)}, (error) => error ? socket.emit('error', error) : process.stdout.write('sent'));
setTimeout(() => process.exit(), 500);`;

type Call = readonly [method: string, params?: object];
const load = (url: string): Call => ['probe/fetch', { url }];
const direct = (host: string, port: number): Call => ['probe/run', { file: '/skep/bin/node', args: ['-e', ASK_DIRECTLY, host, String(port)] }]; // prettier-ignore
const TRAFFIC: Call = ['outside/traffic'];
/** Whatever was answered, or why there was no answer. */
const answerOf = (answer: unknown): string => {
  const { stdout, text, code } = answer as Readonly<Record<string, string | undefined>>;
  return stdout?.split('\r\n\r\n').at(-1) ?? text ?? code ?? JSON.stringify(answer);
};
/** A proxy that says no to a connection is an error for whoever wanted one. */
const isRefused = (answer: unknown): boolean => {
  const { status, code } = answer as { readonly status?: number; readonly code?: string };
  return status === 403 || code !== undefined;
};

// Only root can make such a machine; who runs the server on it is another matter.
describe.skipIf(!sandbox.available || !asRoot).each(users)(
  title('an isolated server, started by %s,', sandbox),
  (_who, become, uid) => {
    let internet: SmallInternet;
    let directory: string;
    beforeAll(async () => {
      internet = await smallInternet(NAMES);
    });
    afterAll(() => internet[Symbol.dispose]());
    beforeEach(() => {
      directory = mkdtempSync(path.join(tmpdir(), 'skep-isolation-'));
      chownSync(directory, uid, uid);
    });
    afterEach(() => rmSync(directory, { recursive: true, force: true }));

    const calls = (spec: Partial<WorkloadSpec>, wanted: readonly Call[]) =>
      callsOn(internet, { become, directory }, spec, wanted);

    function isolated(policy: Partial<EgressPolicy>, wanted: readonly Call[]): unknown[] {
      const nothing = { allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: false };
      const isolation = { workload: 'prober', ...nothing, ...policy };
      return calls({ network: 'bridge', isolation }, wanted);
    }

    test('reaches what its profile lists, whether its programs know of proxies or not', () => {
      const answers = isolated({ hosts: ['api.example', 'six.example'], ports: [80, 443] }, [
        load('http://api.example/'),
        load('http://six.example/'),
        direct('api.example', 80),
        direct('api.example', 443),
      ]).map(answerOf);
      expect(answers).toEqual([
        `api.example at ${PUBLIC} 80`,
        `six.example at ${PUBLIC_6} 80`,
        `api.example at ${PUBLIC} 80`,
        `api.example at ${PUBLIC} 443`,
      ]);
    });

    const ELSEWHERE = [
      'http://other.example/',
      'http://api.example:8080/',
      `http://${PUBLIC}/`,
      `http://[${PUBLIC_6}]/`,
      `http://${PRIVATE}/`,
      `http://${METADATA}/`,
      `http://metadata.example/`,
      'http://loopback.example:8080/',
    ];

    test('reaches nothing else, by name, port, address or IPv6, and what was refused is told', () => {
      const [traffic, ...answers] = isolated({ hosts: ['api.example'], ports: [80] }, [
        ...ELSEWHERE.map(load),
        TRAFFIC,
      ]).toReversed() as [Decision[], ...unknown[]];
      for (const answer of answers) expect(answer).toSatisfy(isRefused);
      const denied = traffic
        .filter(({ decision }) => decision === 'denied')
        .map(({ host, port }) => `${host} ${port}`);
      for (const url of ELSEWHERE) {
        const { hostname, port } = new URL(url);
        expect(denied).toContain(`${hostname.replace(/^\[|\]$/g, '')} ${port || 80}`);
      }
    });

    test('would have reached all of that on the network of its machine', () => {
      const answers = calls({ network: 'host' }, ELSEWHERE.slice(0, -1).map(load));
      for (const answer of answers) expect(answer).toMatchObject({ status: 200 });
    });

    test('is led nowhere by a redirect, a name that leads to another address by now, or one with two', () => {
      const [redirected, elsewhere, first, second, ...rest] = isolated({ hosts: ['.example'], ports: [] }, [
        load(`http://api.example/to?http://${METADATA}/`),
        load(`http://api.example/to?http://${PRIVATE}/`),
        load('http://rebound.example/'),
        // A connection that is still open leads where it led.
        direct('rebound.example', 80),
        direct('rebound.example', 80),
        load('http://both.example/'),
        direct('intern.example', 443),
        direct('metadata.example', 80),
      ]);
      expect(redirected).toSatisfy(isRefused);
      expect(elsewhere).toSatisfy(isRefused);
      expect(answerOf(first)).toBe(`rebound.example at ${PUBLIC} 80`);
      expect(second).toMatchObject({ stdout: expect.stringMatching(/^HTTP\/1\.1 403 /) });
      for (const answer of [redirected, elsewhere, second, ...rest]) {
        expect(answerOf(answer)).not.toMatch(new RegExp(` at (?:${PRIVATE}|${METADATA})`));
      }
    });

    test.each([
      ['metadata, however it is written', ['http://2852039166/', 'http://0xa9fea9fe/', 'http://[::ffff:a9fe:a9fe]/', 'http://metadata.example/']], // prettier-ignore
      ['this machine', [`http://${MACHINE}/`, 'http://machine.example/', 'http://loopback.example/', 'http://localhost./', 'http://host.docker.internal/']], // prettier-ignore
      ['private networks', [`http://${PRIVATE}/`, 'http://intern.example/']],
    ])('that may reach every host does not reach %s', (_what, urls) => {
      const [open, ...answers] = isolated({ allowAll: true }, ['http://other.example/', ...urls].map(load));
      expect(open).toMatchObject({ status: 200 });
      for (const answer of answers) expect(answer).toSatisfy(isRefused);
    });

    test('reaches a private address that its profile names', () => {
      const answers = isolated({ hosts: [PRIVATE, 'intern.example'] }, [
        load(`http://${PRIVATE}/`),
        load('http://intern.example/'),
        direct('intern.example', 443),
      ]).map(answerOf);
      expect(answers).toEqual([
        `${PRIVATE} at ${PRIVATE} 80`,
        `intern.example at ${PRIVATE} 80`,
        `intern.example at ${PRIVATE} 443`,
      ]);
    });

    test("reaches its machine's loopback by the names of an engine's gateway, where that is allowed", () => {
      const names = ['host.docker.internal', 'gateway.docker.internal', 'host.containers.internal'];
      const urls = [...names, '127.0.0.1', 'loopback.example'].map(
        (name) => `http://${name}:${LOOPBACK_PORT}/`,
      );
      const allowed = isolated({ runtimeGateway: true }, urls.map(load));
      expect(allowed.slice(0, 3).map(answerOf)).toEqual(names.map(() => 'loopback of the machine'));
      for (const answer of [...allowed.slice(3), ...isolated({ allowAll: true }, urls.map(load))]) {
        expect(answer).toSatisfy(isRefused);
      }
    });

    test('tells nobody anything by asking for names', () => {
      const before = internet.asked.length;
      const [found, tunnel, sent, traffic] = isolated({ hosts: ['api.example'], ports: [443] }, [
        ['probe/lookup', { name: 'api.example' }],
        ['probe/lookup', { name: 'what-i-know.other.example' }],
        ['probe/run', { file: '/skep/bin/node', args: ['-e', ASK_NAMES] }],
        TRAFFIC,
      ]);
      expect(found).toEqual([{ address: '1.2.3.4', family: 4 }]);
      expect(tunnel).toEqual({ code: 'ENOTFOUND' });
      expect(answerOf(sent)).toBe('ENETUNREACH');
      expect(internet.asked.slice(before)).toEqual([]);
      expect(traffic).toContainEqual(
        expect.objectContaining({ decision: 'denied', host: 'what-i-know.other.example', via: 'dns' }),
      );
    });
  },
);

describe.skipIf(!sandbox.available || !asRoot).each(users)(
  title('a server that is not isolated, started by %s where slirp4netns is missing,', sandbox),
  (_who, become, uid) => {
    let internet: SmallInternet;
    let directory: string;
    beforeAll(async () => {
      const slirp = findProgram('slirp4netns', process.env);
      internet = await smallInternet(NAMES, slirp === undefined ? [] : [slirp]);
      directory = mkdtempSync(path.join(tmpdir(), 'skep-isolation-'));
      chownSync(directory, uid, uid);
    });
    afterAll(() => {
      internet[Symbol.dispose]();
      rmSync(directory, { recursive: true, force: true });
    });
    const calls = (spec: Partial<WorkloadSpec>, wanted: readonly Call[]) =>
      callsOn(internet, { become, directory }, spec, wanted);

    test('reaches every public host through a gateway, and neither its machine nor what is private', () => {
      const [interfaces, open, plain, ...answers] = calls({ network: 'bridge' }, [
        ['probe/interfaces'],
        load('http://other.example:8080/'),
        direct('api.example', 443),
        ...[`http://${MACHINE}/`, `http://${METADATA}/`, 'http://intern.example/'].map(load),
        ['probe/connect', { host: PUBLIC, port: 80 }],
      ]);
      expect(interfaces).toEqual(['lo']);
      expect(answerOf(open)).toBe(`other.example:8080 at ${PUBLIC} 8080`);
      expect(answerOf(plain)).toBe(`api.example at ${PUBLIC} 443`);
      for (const answer of answers) expect(answer).toSatisfy(isRefused);
    });

    test('is reached over its ports as with slirp4netns, whatever speaks there', () => {
      const ports = [{ hostIp: '127.0.0.1', hostPort: 20_001, containerPort: 3000 }];
      const answers = calls({ network: 'bridge', ports }, [
        ['probe/listen', { port: 3000, host: '127.0.0.1', says: 'mine' }],
        ['outside/read', { port: 20_001 }],
        ['outside/read', { port: 3000 }],
      ]);
      expect(answers).toEqual(['listening', 'mine', { code: 'ECONNREFUSED' }]);
    });
  },
);

interface Started {
  /** Becomes the user who starts the server. */
  readonly become: readonly string[];
  /** Of that user's. */
  readonly directory: string;
}

/** Calls of the probe server, which somebody starts on the machine of that internet. */
function callsOn(
  internet: SmallInternet,
  { become, directory }: Started,
  spec: Partial<WorkloadSpec>,
  wanted: readonly Call[],
): unknown[] {
  const prober = path.join(import.meta.dirname, 'sandbox-prober.ts');
  const asked = wanted.map(([method, params = {}]) => [method, params]);
  const command = [process.execPath, prober, directory, JSON.stringify(spec), JSON.stringify(asked)];
  const [file = '', ...args] = internet.through([...become, ...command]);
  const env = { PATH: process.env['PATH'], HOME: directory };
  const { status, stdout, stderr } = spawnSync(file, args, { env, encoding: 'utf8', timeout: 60_000 });
  if (status !== 0) throw new Error(`the prober failed: ${stderr}`);
  return JSON.parse(stdout) as unknown[];
}

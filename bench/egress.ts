import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import { createServer, connect, type AddressInfo, type Socket } from 'node:net';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as delay } from 'node:timers/promises';
import type { GatewayConfig } from '../packages/skep/src/egress/gateway-config.ts';
import { GATEWAY_NODE_ENV, GATEWAY_NODE_FLAGS } from '../packages/skep/src/egress/node-flags.ts';
import { started } from './proxy/started.ts';
import { median } from './median.ts';
import type { Bench } from './row.ts';

const GATEWAY = path.resolve(import.meta.dirname, '../dist/skep/gateway.mjs');
const CONNECTIONS = 200;
const ROUNDS = 3;
/** Until a gateway has collected what it read into. */
const SETTLE_MS = 6_000;

/** What an allowed connection through the gateway of an isolated workload costs, against a direct one. */
export const egressBench: Bench = async (report, { seconds }) => {
  if (!existsSync(GATEWAY)) throw new Error('dist/skep is missing: run "npm run build" first');
  if (process.platform !== 'linux') return console.log('egress: skipped, memory is read from /proc');
  await using server = await started('../egress/http-server.ts', []);
  await using gateway = await startGateway();
  const port = Number(new URL(server.url).port);
  const direct = () => opened(port);
  const through = () => tunnelled(gateway.port, port);

  const more: number[] = [];
  for (let turn = 0; turn < CONNECTIONS; turn += 1) more.push(-(await msOf(direct)) + (await msOf(through)));
  const name = 'egress: a request on a new connection through the gateway, over a direct one';
  report({ name, value: median(more), unit: 'ms', ceiling: 5 });

  const kept: Socket[] = [];
  for (let one = 0; one < CONNECTIONS; one += 1) {
    const socket = await through();
    await get(socket, '/');
    kept.push(socket);
  }
  const memory = `egress: anonymous memory of a gateway with ${CONNECTIONS} connections`;
  report({ name: memory, value: anonymousMegabytes(gateway.pid), unit: 'MB', ceiling: 30 });
  for (const socket of kept) socket.destroy();

  const ratios: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) {
    const mebibytes = 128 * seconds;
    const ofDirect = await mebibytesPerSecond(direct, mebibytes);
    ratios.push((await mebibytesPerSecond(through, mebibytes)) / ofDirect);
  }
  report({
    name: 'egress: throughput of a tunnel, against a direct connection',
    value: median(ratios),
    unit: 'ratio',
    floor: 0.2,
  });
  await delay(SETTLE_MS);
  const after = `egress: anonymous memory of a gateway after ${3 * CONNECTIONS} connections and ${ROUNDS} long answers`;
  report({ name: after, value: anonymousMegabytes(gateway.pid), unit: 'MB', ceiling: 30 });
};

/** A gateway whose only host is this machine. */
async function startGateway() {
  const port = await freePort();
  const config: GatewayConfig = {
    mode: 'listen',
    policy: { workload: 'bench', allowAll: false, hosts: [], ports: [], inbound: [], runtimeGateway: true },
    machine: [],
    answerWith: '127.0.0.1',
    runtimeGateway: { addresses: [], leadsTo: '127.0.0.1' },
    listeners: [{ serve: 'proxy', host: '127.0.0.1', port }],
  };
  const child = spawn(process.execPath, [...GATEWAY_NODE_FLAGS, GATEWAY], {
    stdio: ['ignore', 'pipe', 'inherit'],
    env: { ...process.env, ...GATEWAY_NODE_ENV, SKEP_GATEWAY: JSON.stringify(config) },
  });
  await once(createInterface({ input: child.stdout }), 'line');
  return {
    port,
    pid: child.pid ?? 0,
    async [Symbol.asyncDispose]() {
      child.kill('SIGTERM');
      await once(child, 'exit');
    },
  };
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

async function opened(port: number): Promise<Socket> {
  const socket = connect({ port, host: '127.0.0.1', noDelay: true });
  await once(socket, 'connect');
  return socket;
}

async function tunnelled(gateway: number, port: number): Promise<Socket> {
  const socket = await opened(gateway);
  socket.write(`CONNECT host.docker.internal:${port} HTTP/1.1\r\nHost: bench\r\n\r\n`);
  const [answer] = (await once(socket, 'data')) as [Buffer];
  if (!answer.toString().startsWith('HTTP/1.1 200 ')) throw new Error(answer.toString());
  return socket;
}

async function get(socket: Socket, target: string): Promise<void> {
  socket.write(`GET ${target} HTTP/1.1\r\nHost: bench\r\n\r\n`);
  await once(socket, 'data');
}

async function msOf(open: () => Promise<Socket>): Promise<number> {
  const begun = performance.now();
  const socket = await open();
  await get(socket, '/');
  const took = performance.now() - begun;
  socket.destroy();
  return took;
}

async function mebibytesPerSecond(open: () => Promise<Socket>, mebibytes: number): Promise<number> {
  const socket = await open();
  const begun = performance.now();
  socket.write(`GET /${mebibytes} HTTP/1.1\r\nHost: bench\r\nConnection: close\r\n\r\n`);
  socket.resume();
  await once(socket, 'end');
  const took = performance.now() - begun;
  socket.destroy();
  return mebibytes / (took / 1_000);
}

/** Memory that is the process's own, proc_pid_smaps_rollup. */
function anonymousMegabytes(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, 'utf8');
  return Number(/^Anonymous:\s+(\d+) kB/m.exec(rollup)?.[1] ?? Number.NaN) / 1024;
}

import { createInterface } from 'node:readline';
import type { MemoryProcess } from './program.ts';

interface Call {
  readonly id: number;
  readonly method: string;
  readonly params: Readonly<Record<string, unknown>>;
}

/** The probe server of the contract test (e2e/fixtures/probe-server.mjs), as far as it makes sense in memory. */
export function probeProgram(process: MemoryProcess): void {
  process.warn('probe ready\n');
  createInterface({ input: process.stdin }).on('line', (line) => {
    const { id, method, params } = JSON.parse(line) as Call;
    const answer = METHODS[method];
    const reply = answer ? { result: answer(params, process) ?? null } : { error: { message: method } };
    process.write(`${JSON.stringify({ jsonrpc: '2.0', id, ...reply })}\n`);
  });
}

const METHODS: Readonly<Record<string, (params: Call['params'], process: MemoryProcess) => unknown>> = {
  ping: () => ({}),
  'probe/echo': (params) => params,
  'probe/args': (_, { args }) => args,
  'probe/env': ({ name }, { env }) => env[String(name)],
  'probe/stderr': ({ text }, process) => process.warn(String(text)),
  'probe/ignore-term': (_, process) => process.ignoreTermination(),
  'probe/exit': ({ code }, process) => process.exit(Number(code)),
};

import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test, vi } from 'vitest';
import { waitingProgram } from './waiting-program.ts';

const HERE = { x64: 'amd64', arm64: 'arm64' }[process.arch as string];
const waits = process.platform === 'linux' ? HERE : undefined;

test.skipIf(waits === undefined)('waits without any work of a processor, also after a signal', async () => {
  const directory = mkdtempSync(path.join(tmpdir(), 'skep-waits-'));
  onTestFinished(() => rmSync(directory, { recursive: true, force: true }));
  const file = path.join(directory, 'hold');
  writeFileSync(file, waitingProgram(waits ?? '') ?? '', { mode: 0o755 });
  const child = spawn(file, { stdio: 'ignore', env: {} });
  onTestFinished(() => void child.kill('SIGKILL'));
  await once(child, 'spawn');
  /** Of its state in /proc: running, sleeping, stopped. */
  const state = () =>
    / ([A-Z]) /.exec(readFileSync(`/proc/${child.pid}/stat`, 'utf8').split(')')[1] ?? '')?.[1];
  const sleeps = () => vi.waitFor(() => expect(state()).toBe('S'), 10_000);
  await sleeps();
  child.kill('SIGSTOP');
  await vi.waitFor(() => expect(state()).toBe('T'), 10_000);
  child.kill('SIGCONT');
  await sleeps();
  child.kill('SIGTERM');
  expect(await once(child, 'exit')).toEqual([null, 'SIGTERM']);
});

test.each([
  ['amd64', 129, 62],
  ['arm64', 148, 183],
])('is a whole program for %s', (architecture, length, machine) => {
  const program = waitingProgram(architecture);
  expect(program).toHaveLength(length);
  expect(program?.subarray(0, 7)).toEqual(Buffer.from([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]));
  expect(program?.readUInt16LE(18)).toBe(machine);
  expect(program?.readBigUInt64LE(24)).toBe(0x40_0078n);
});

test.each(['riscv64', '386', '', 'constructor'])('is not there for %j', (architecture) => {
  expect(waitingProgram(architecture)).toBeUndefined();
});

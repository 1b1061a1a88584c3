import { randomBytes } from 'node:crypto';
import { homedir } from 'node:os';
import { detectRuntime } from '@skep/cli/runtime/detect.ts';
import type { RuntimeEnvironment } from '@skep/cli/runtime/environment.ts';
import type { Runtime } from '@skep/cli/runtime/runtime.ts';
import type { RuntimeKind } from '@skep/cli/settings/identity.ts';

export interface RuntimeDirectories {
  readonly dataDir: string;
  readonly cacheDir: string;
}

/** Start of every token these tests draw, to find again what they made. */
export const TEST_TOKEN = `e2e${randomBytes(4).toString('hex')}x`;

/** The environment of this machine with state kept apart. */
export function testEnvironment(directories: RuntimeDirectories): RuntimeEnvironment {
  return {
    env: process.env,
    home: homedir(),
    platform: process.platform,
    execPath: process.execPath,
    owner: TEST_TOKEN,
    randomId: () => `${TEST_TOKEN}${randomBytes(8).toString('hex')}`,
    ...directories,
  };
}

/** The adapter of that kind on this machine. */
export function openRuntime(kind: RuntimeKind, directories: RuntimeDirectories): Promise<Runtime> {
  return detectRuntime(testEnvironment(directories), { kind });
}

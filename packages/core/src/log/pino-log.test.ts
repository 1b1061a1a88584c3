import { spawnSync } from 'node:child_process';
import { closeSync, existsSync, openSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import { expect, test } from 'vitest';

const PROGRAM = `
const { openLog } = await import(process.argv[1]);
const log = await openLog({ level: 'info' });
process.on('uncaughtException', (error) => log.error({ err: error }, 'caught by nobody'));
log.info({}, 'started');
setImmediate(() => { throw new Error('a fault'); });
setTimeout(() => process.stdout.write('still here'), 50);
`;

test.skipIf(!existsSync('/dev/full'))('a program whose log meets a full disk goes on', () => {
  const full = openSync('/dev/full', 'w');
  try {
    const source = fileURLToPath(new URL('pino-log.ts', import.meta.url));
    const args = ['--input-type=module', '--eval', PROGRAM, '--', source];
    const { status, stdout } = spawnSync(process.execPath, args, {
      stdio: ['ignore', 'pipe', full],
      encoding: 'utf8',
      timeout: 10_000,
    });
    expect({ status, stdout }).toEqual({ status: 0, stdout: 'still here' });
  } finally {
    closeSync(full);
  }
});

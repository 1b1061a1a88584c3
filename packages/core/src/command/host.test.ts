import { EventEmitter } from 'node:events';
import { expect, test } from 'vitest';
import { abortOnSignals, workingDirectory } from './host.ts';

const gone = (): never => {
  throw Object.assign(new Error('ENOENT: no such file or directory, uv_cwd'), { code: 'ENOENT' });
};

test('a working directory that was removed is named, with what to do', () => {
  expect(() => workingDirectory({ cwd: gone, env: { PWD: '/home/me/old' } })).toThrow(
    expect.objectContaining({
      code: 'file/not-found',
      message: 'the working directory "/home/me/old" is not there any more',
      hint: expect.stringContaining('cd'),
    }),
  );
});

test('a working directory that nobody has named is told of all the same', () => {
  expect(() => workingDirectory({ cwd: gone, env: {} })).toThrow(
    'the working directory is not there any more',
  );
  expect(workingDirectory({ cwd: () => '/here', env: { PWD: '/elsewhere' } })).toBe('/here');
});

test('the first signal aborts with the reason, the second ends the process with its status', () => {
  const ended: unknown[] = [];
  const process = Object.assign(new EventEmitter(), { exit: (status: unknown) => void ended.push(status) });
  const reason = new Error('cancelled');
  const signal = abortOnSignals(process as unknown as NodeJS.Process, { SIGINT: 130, SIGTERM: 143 }, reason);
  expect(signal.aborted).toBe(false);
  process.emit('SIGTERM');
  expect([signal.reason, ended]).toEqual([reason, []]);
  process.emit('SIGINT');
  expect(ended).toEqual([130]);
});

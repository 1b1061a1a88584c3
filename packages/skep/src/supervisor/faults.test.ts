import { EventEmitter } from 'node:events';
import { silentLog } from '@skep/core/log/log.ts';
import { expect, test } from 'vitest';
import { outliveFaults } from './faults.ts';

test('an error that nobody caught is logged and ends nothing', () => {
  const faults = new EventEmitter();
  const logged: unknown[] = [];
  const end = outliveFaults(
    (listener) => {
      faults.on('error', listener);
      return () => faults.off('error', listener);
    },
    { ...silentLog, error: (fields: object) => logged.push(fields) },
  );
  const error = new Error('no one expected this');
  faults.emit('error', error);
  expect(logged).toEqual([{ err: error }]);
  end();
  expect(faults.listenerCount('error')).toBe(0);
});

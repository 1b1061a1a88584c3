import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { describe } from 'vitest';
import { memorySessionStore } from '../../doubles/memory-session-store.ts';
import { sessionStoreContract } from './contract.ts';

describe('a session store in memory', () => {
  const clock = manualClock();
  const store = memorySessionStore(clock);
  sessionStoreContract(
    () => store,
    (milliseconds) => {
      clock.pass(milliseconds);
      return Promise.resolve();
    },
  );
});

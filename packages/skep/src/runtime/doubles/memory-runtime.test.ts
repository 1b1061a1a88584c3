import { describe } from 'vitest';
import { runtimeContract } from '../contract.ts';
import { MemoryRuntime } from './memory-runtime.ts';
import { probeProgram } from './probe-program.ts';

describe('the runtime in memory', () => {
  const runtime = new MemoryRuntime({ probe: probeProgram });
  runtimeContract({
    open: async () => runtime,
    probeServer: async () => 'probe',
    missing: { source: { kind: 'image', reference: 'not/there:1' }, code: 'runtime/image-not-found' },
    hold: undefined,
    leftovers: async () => (await runtime.list()).map((one) => one.name),
    close: async () => {},
  });
});

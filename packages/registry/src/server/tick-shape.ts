import { executionAsyncResource } from 'node:async_hooks';

/**
 * Keeps `process.nextTick` fast until it is released. V8 forgets the shape of an object when two major collections find
 * none of it, or one as a last resort, and then the literal in `nextTick` is built by the slow way for the rest of the
 * process: a tick takes eight times as long, and `node:http` needs six for an answer. A start collects while no tick is
 * waiting, so one tick is held.
 */
export function holdTickShape(): () => void {
  const held: object[] = [];
  process.nextTick(() => held.push(executionAsyncResource()));
  return () => held.splice(0);
}

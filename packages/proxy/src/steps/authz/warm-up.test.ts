import { expect, test } from 'vitest';
import { loadCedar } from './cedar-engine.ts';
import { warmUp } from './warm-up.ts';

test('Cedar is warmed up by decisions that it can make, in turns, to the end once', async () => {
  const cedar = await loadCedar();
  const decisions: unknown[] = [];
  const ending = new AbortController();
  const engine: Parameters<typeof warmUp>[0] = {
    preparsePolicySet: (id, policies) => cedar.preparsePolicySet(id, policies),
    statefulIsAuthorized(call) {
      const answer = cedar.statefulIsAuthorized(call);
      decisions.push(answer.type === 'success' && answer.response.diagnostics.errors.length === 0);
      return answer;
    },
  };
  let turns = 0;
  const other = setInterval(() => {
    turns += 1;
    if (decisions.length >= 500) ending.abort();
  });
  await warmUp(engine, ending.signal);
  const early = decisions.length;
  expect(early).toBeLessThan(1_000);
  await warmUp(engine, new AbortController().signal);
  clearInterval(other);
  expect(turns).toBeGreaterThan(10);
  expect(decisions).toEqual(Array.from({ length: early + 1_000 }, () => true));
  await warmUp(engine, new AbortController().signal);
  expect(decisions).toHaveLength(early + 1_000);
});

import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { decodeRunConfig } from '../run-config/run-config.ts';
import { isOwn, ownerOf } from './owner.ts';
import { toWorkloadSpec } from './workload-spec.ts';

test('a label tells what is ours from what is not', () => {
  const observed = { name: 'a1', state: 'running', reference: 'x', createdAt: new Date(0) } as const;
  const spec = toWorkloadSpec(
    decodeRunConfig({ name: 'a1', image: 'fake:1', transport: 'stdio', port: 4001 }, 'test'),
    { owner: 'me', runtime: { reachesLoopback: false, keepsSecrets: true } },
  );
  const ours = { ...observed, labels: spec.labels };
  expect(isOwn(ours, 'me')).toBe(true);
  expect(isOwn(ours, 'somebody else')).toBe(false);
  expect(isOwn({ ...observed, labels: {} }, 'me')).toBe(false);
  expect(isOwn({ ...observed, labels: { 'skep.state': 'me' } }, 'me')).toBe(false);
});

test('an owner is named by its state directory, and the name does not repeat where that is', () => {
  fc.assert(
    fc.property(fc.string(), fc.string(), (one, other) => {
      expect(ownerOf(one) === ownerOf(other)).toBe(one === other);
      expect(ownerOf(one)).toMatch(/^[0-9a-f]{16}$/);
    }),
  );
});

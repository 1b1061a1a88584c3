import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ANNOTATION } from './objects.ts';
import { isStartedAgain, lifeOf, observed, setFacts } from './pod-life.ts';

const started = { [ANNOTATION.startedAt]: '2026-01-02T03:04:05Z', [ANNOTATION.reference]: 'a:1' };
const set = (replicas: number, annotations: object = started) =>
  setFacts({ metadata: { name: 'a1', annotations }, spec: { replicas } });
const pod = (container: object, more: object = {}) => ({
  metadata: { name: 'a1-0', uid: 'u1' },
  status: { containerStatuses: [{ name: 'mcp', restartCount: 0, ...container }], ...more },
});
const running = pod({ state: { running: { startedAt: '2026-01-02T03:04:06Z' } } });

describe('how a workload is', () => {
  test.each([
    ['never started', set(0, {}), undefined, { state: 'created' }],
    ['asked for, without a pod yet', set(1), undefined, { state: 'running' }],
    ['its container runs', set(1), running, { state: 'running' }],
    [
      'stopped',
      set(0, { ...started, [ANNOTATION.exitCode]: '143' }),
      undefined,
      { state: 'exited', exitCode: 143 },
    ],
    [
      'its container ended',
      set(1),
      pod({ state: { terminated: { exitCode: 3, reason: 'Error' } } }),
      { state: 'exited', exitCode: 3 },
    ],
    [
      'its container used too much memory',
      set(1),
      pod({ state: { terminated: { exitCode: 137, reason: 'OOMKilled' } } }),
      { state: 'exited', exitCode: 137, exceeded: 'memory' },
    ],
    [
      'the cluster started its container again: that is another server',
      set(1),
      pod({ restartCount: 1, state: { running: {} }, lastState: { terminated: { exitCode: 7 } } }),
      { state: 'exited', exitCode: 7 },
    ],
    [
      'another pod stands in for the one that was started',
      set(1, { ...started, [ANNOTATION.pod]: 'u0' }),
      running,
      { state: 'exited', exitCode: 1 },
    ],
    ['its pod was evicted', set(1), { status: { phase: 'Failed' } }, { state: 'exited', exitCode: 1 }],
  ])('%s', (_what, facts, seen, expected) => {
    expect(observed(facts, seen)).toMatchObject({ name: 'a1', ...expected });
  });

  test('what a pod waits for is told, and whether that is in vain', () => {
    const waiting = { reason: 'ImagePullBackOff', message: 'Back-off pulling image "x"' };
    expect(lifeOf(pod({ state: { waiting } }))).toEqual({
      is: 'coming',
      why: 'ImagePullBackOff: Back-off pulling image "x"',
      hopeless: true,
      missing: true,
    });
    const conditions = [
      { type: 'PodScheduled', status: 'False', reason: 'Unschedulable', message: '0/3 nodes' },
    ];
    expect(lifeOf({ status: { conditions } })).toMatchObject({
      why: 'Unschedulable: 0/3 nodes',
      hopeless: false,
    });
  });

  test('anything that a cluster, or whoever writes there, says is read', () => {
    fc.assert(
      fc.property(fc.object({ maxDepth: 4 }), fc.object({ maxDepth: 5 }), (one, other) => {
        const annotations = Object.fromEntries(
          Object.values(ANNOTATION).map((key) => [key, JSON.stringify(one)]),
        );
        observed(setFacts({ metadata: { annotations }, spec: one }), { status: other });
        lifeOf({ status: { containerStatuses: [one, { name: 'mcp', state: other, lastState: one }] } });
      }),
    );
  });
});

test.each<[string, object, boolean]>([
  ['a pod that no node has taken yet', { status: { phase: 'Pending' } }, false],
  ['a pod of which nothing is told', {}, false],
  ['one that was evicted', { status: { phase: 'Failed' } }, false],
  ['a container that runs', running, false],
  ['a container that ended', pod({ state: { terminated: { exitCode: 3 } } }), false],
  [
    'a container that runs again',
    pod({ restartCount: 1, state: { running: {} }, lastState: { terminated: { exitCode: 7 } } }),
    true,
  ],
])('the log before is that of a container that was started again: %s', (_what, seen, expected) => {
  expect(isStartedAgain(seen as Readonly<Record<string, unknown>>)).toBe(expected);
});

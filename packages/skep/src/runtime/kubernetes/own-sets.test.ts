import { expect, test } from 'vitest';
import type { ClusterApi } from './cluster-api.ts';
import { ANNOTATION } from './objects.ts';
import { OwnSets } from './own-sets.ts';
import { setFacts } from './pod-life.ts';

const written = [
  { hostIp: '0.0.0.0', hostPort: 4000, containerPort: 22 },
  { hostIp: '192.168.0.2', hostPort: 4001, containerPort: 22 },
  { hostIp: '::', hostPort: 4002, containerPort: 22 },
  { hostIp: 'localhost', hostPort: 4003, containerPort: 22 },
  { hostIp: '127.0.0.1', hostPort: 4004, containerPort: 8080 },
  { hostIp: '127.0.0.1', hostPort: 0, containerPort: 8080 },
  { hostIp: '::1', hostPort: 4005, containerPort: 8080 },
];
const set = setFacts({
  metadata: { name: 'a1', annotations: { [ANNOTATION.ports]: JSON.stringify(written) } },
});
const nobodyAsks = {} as ClusterApi;

test('whoever writes into the cluster opens no port of this machine to others', () => {
  const ports = new OwnSets(nobodyAsks, 'one').hostPorts(set);
  expect(ports.map(({ hostPort }) => hostPort)).toEqual([4004, 4005]);
});

test('ports that the person asked for are opened as they said, whatever the cluster says', () => {
  const sets = new OwnSets(nobodyAsks, 'one');
  const published = [{ hostIp: '0.0.0.0', hostPort: 9000, containerPort: 8080 }];
  sets.remember('a1', 1, published);
  expect(sets.hostPorts(set)).toEqual(published);
  sets.forget('a1');
  expect(sets.hostPorts(set)).not.toEqual(published);
});

import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Networked } from '../permissions/change-hosts.ts';
import type { Decision } from './decision.ts';
import { refusedHosts } from './refused.ts';

const config = (hosts: readonly string[], ports: readonly number[], all = false): Networked => ({
  name: 'a1',
  isolate_network: true,
  permission_profile: {
    network: { outbound: { insecure_allow_all: all, allow_host: hosts, allow_port: ports } },
  },
});
const LISTING = config(['b.com'], [443]);
const denied = (host: string, more: Partial<Decision> = {}): Decision => ({
  time: '2026-01-01T00:00:00Z',
  decision: 'denied',
  host,
  port: 443,
  via: 'proxy',
  reason: 'no',
  count: 1,
  ...more,
});

describe('what was refused', () => {
  test('is each host and port once, however it was tried, the most frequent first and then the newest', () => {
    const decisions = [
      denied('a.com', { count: 2 }),
      denied('new.com', { time: '2026-01-02T00:00:00Z' }),
      denied('old.com'),
      denied('a.com', { via: 'direct', count: 3, time: '2026-01-03T00:00:00Z', reason: 'why' }),
      denied('b.com', { decision: 'allowed', count: 100 }),
    ];
    expect(
      refusedHosts(decisions, LISTING).map(({ host, count, time, reason }) => [host, count, time, reason]),
    ).toEqual([
      ['a.com', 5, '2026-01-03T00:00:00Z', 'why'],
      ['new.com', 1, '2026-01-02T00:00:00Z', 'no'],
      ['old.com', 1, '2026-01-01T00:00:00Z', 'no'],
    ]);
  });

  test('has no name beside its connections', () => {
    const { port: _none, ...byName } = denied('a.com', { via: 'dns', count: 9 });
    expect(refusedHosts([byName, denied('a.com')], LISTING)).toHaveLength(1);
    expect(refusedHosts([byName], LISTING)).toMatchObject([{ permit: 'skep permit a1 a.com:443' }]);
  });

  test.each<[Networked, Partial<Decision> & { host: string }, string | undefined]>([
    [LISTING, { host: 'a.com' }, 'skep permit a1 a.com:443'],
    [LISTING, { host: 'b.com', port: 80 }, 'skep permit a1 b.com:80'],
    [LISTING, { host: '2001:db8::1', port: 80 }, 'skep permit a1 [2001:db8::1]:80'],
    [LISTING, { host: '10.0.0.5', port: 5432 }, 'skep permit a1 10.0.0.5:5432'],
    [config([], [], true), { host: 'db.example.com', port: 5432 }, 'skep permit a1 db.example.com:5432'],
    [config(['.example.com'], []), { host: 'db.example.com' }, 'skep permit a1 db.example.com:443'],
    [LISTING, { host: '169.254.169.254', port: 80, never: true }, undefined],
    [LISTING, { host: '127.0.0.1' }, undefined],
    [LISTING, { host: 'host.docker.internal' }, undefined],
    [LISTING, { host: '*' }, undefined],
    [LISTING, { host: 'a1', via: 'ingress' }, undefined],
    [LISTING, { host: 'x;rm -rf ~' }, undefined],
    [LISTING, { host: '.com' }, undefined],
    [LISTING, { host: '$(id)' }, undefined],
    [LISTING, { host: 'a\u001B[31m.com' }, undefined],
    [config([], [443]), { host: '10.0.0.5' }, undefined],
  ])('of %j, %j has the line %s', (permitted, { host, ...more }, permit) => {
    expect(refusedHosts([denied(host, more)], permitted)[0]?.permit).toBe(permit);
  });

  test('whatever a server asks for, a line holds nothing that a shell reads', () => {
    const port = fc.integer({ min: 1, max: 65_535 });
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.domain(), fc.ipV6(), fc.ipV4()), port, (host, asked) => {
        const [refused] = refusedHosts([denied(host, { port: asked })], LISTING);
        if (refused?.permit !== undefined) expect(refused.permit).toMatch(/^skep permit a1 [\w.:[\]-]+$/);
      }),
    );
  });
});

import { randomInt } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { Decision } from '../egress/decision.ts';
import { Judge } from '../egress/judge.ts';
import { egressPolicy } from '../egress/policy-of.ts';
import { decodeProfile, profileMounts, type PermissionProfile } from '../permissions/profile.ts';
import type { SeenFiles } from '../runtime/runtime.ts';
import { proposedProfile, type Learned } from './learned-profile.ts';

const NOTHING: Learned = {
  name: 'a1',
  profile: {},
  decisions: [],
  files: { paths: new Map(), complete: true, unseen: [] },
  lacking: [],
};
type Changes = Partial<Omit<Decision, 'port'>> & { readonly port?: number | undefined };
/** Without a port: its name alone was asked for. */
const decided = (host: string, { port, ...more }: Changes = { port: 443 }): Decision => ({
  time: '2026-01-01T00:00:00.000Z',
  decision: 'allowed',
  host,
  via: 'proxy',
  count: 1,
  ...more,
  ...(port === undefined ? {} : { port }),
});
const used = (paths: Readonly<Record<string, boolean>>, complete = true): SeenFiles => ({
  paths: new Map(Object.entries(paths).map(([path, changes]) => [path, { changes, there: true }])),
  complete,
  unseen: [],
});
const proposed = (some: Partial<Learned>): PermissionProfile => proposedProfile({ ...NOTHING, ...some });

describe('the proposed profile', () => {
  test('allows nothing where nothing was seen', () => {
    expect(proposed({})).toEqual({
      name: 'a1',
      read: [],
      write: [],
      network: { outbound: { insecure_allow_all: false, allow_host: [], allow_port: [] } },
    });
  });

  test('keeps the volumes that it shares, whatever was seen of them', () => {
    const profile = { read: ['volume://a:/a'], write: ['/srv', 'volume://b:/b'] };
    expect(proposed({ profile })).toMatchObject({ read: ['volume://a:/a'], write: ['volume://b:/b'] });
  });

  test.each([
    [
      'hosts and ports, each once',
      [
        decided('b.example'),
        decided('a.example', { port: 8080 }),
        decided('b.example', { via: 'direct', port: 443 }),
      ],
      ['a.example', 'b.example'],
      [443, 8080],
    ],
    [
      'a name that was only asked for, with the usual port',
      [decided('a.example', { via: 'dns', port: undefined })],
      ['a.example'],
      [443],
    ],
    [
      'a name that was only asked for, beside another port',
      [decided('a.example', { via: 'dns', port: undefined }), decided('10.0.0.8', { port: 5432 })],
      ['10.0.0.8', 'a.example'],
      [5432],
    ],
    ['nothing of what was refused', [decided('10.0.0.9', { decision: 'denied' })], [], []],
    ['nothing that was not found', [decided('gone.example', { decision: 'not-found', port: 443 })], [], []],
    ['nothing of who asked the server', [decided('me.example', { via: 'ingress' })], [], []],
    [
      'no whole domain, nothing hostile, and what no profile opens',
      [
        decided('.example'),
        decided('*'),
        decided('a b'),
        decided('169.254.169.254'),
        decided('host.docker.internal'),
      ],
      [],
      [],
    ],
  ] as [string, Decision[], string[], number[]][])('has %s', (_what, decisions, allow_host, allow_port) => {
    expect(proposed({ decisions }).network?.outbound).toEqual({
      insecure_allow_all: false,
      allow_host,
      allow_port,
    });
  });

  const profile: PermissionProfile = { read: ['/r:/r'], write: ['/w:/w', '/x:/x', '/y:/y'] };

  test('has mounts read-only that were not written, and leaves out what was not looked at', () => {
    expect(proposed({ profile, files: used({ '/r': true, '/w': false, '/x': true }) })).toMatchObject({
      read: ['/r:/r', '/w:/w'],
      write: ['/x:/x'],
    });
  });

  test('has mounts as they were where not everything was seen', () => {
    expect(proposed({ profile, files: used({ '/w': false }, false) })).toMatchObject({
      read: ['/r:/r'],
      write: ['/w:/w', '/x:/x', '/y:/y'],
    });
  });

  test('has what was lacking, and keeps what learning does not look at', () => {
    const kept = { privileged: true, network: { mode: 'bridge', inbound: { allow_host: ['me.example'] } } };
    expect(proposed({ profile: kept, lacking: [{ is: 'path', path: '/n', readOnly: false }] })).toMatchObject(
      {
        ...kept,
        write: ['/n:/n'],
      },
    );
  });
});

test('whatever was seen, what it proposes is a profile, and allows that', () => {
  const pick = <T>(...all: readonly T[]): T => all[randomInt(all.length)] as T;
  for (let round = 0; round < 300; round += 1) {
    const decisions = Array.from({ length: randomInt(6) }, () =>
      decided(
        pick('a.example', 'B.example', '10.1.2.3', '2606:2800:220:1::1', 'x_y.example', '.d.example', '*'),
        {
          port: pick(80, 443, 8080, undefined),
          via: pick('proxy', 'dns', 'direct'),
          decision: pick('allowed', 'allowed', 'denied'),
        },
      ),
    );
    const files = used(
      Object.fromEntries(['/a', '/b'].flatMap((one) => (randomInt(2) ? [[one, randomInt(2) === 1]] : []))),
    );
    const value = proposed({ decisions, files, profile: { read: ['/s:/a'], write: ['/t:/b'] } });
    const profile = decodeProfile(JSON.parse(JSON.stringify(value)), 'it', '/');
    const policy = egressPolicy({ name: 'a1', permission_profile: profile });
    const judge = new Judge({ policy, machine: () => [], runtimeGateway: { addresses: [] } });
    for (const { host, port, decision } of decisions) {
      const isNamed = decision === 'allowed' && !/^[.*]/.test(host);
      if (isNamed && port !== undefined) expect(judge.host(host.toLowerCase(), port)).toBeUndefined();
    }
    expect(policy.allowAll).toBe(false);
    const targets = new Map(profileMounts(profile, '/').map((mount) => [mount.target, mount]));
    for (const [path, { changes }] of files.paths) {
      expect(targets.get(path)).toMatchObject(path === '/b' ? { readOnly: !changes } : { readOnly: true });
    }
  }
});

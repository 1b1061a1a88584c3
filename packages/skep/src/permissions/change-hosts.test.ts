import { SkepError } from '@skep/core/errors/skep-error.ts';
import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { allowedHosts, allowedTexts } from './allowed-hosts.ts';
import { denyHost, permitHost, type HostRight, type Networked } from './change-hosts.ts';
import type { PermissionProfile } from './profile.ts';
import { parseRight } from './right.ts';

type Outbound = NonNullable<NonNullable<PermissionProfile['network']>['outbound']>;

const isolated = (outbound: Outbound | undefined, mode?: string): Networked => ({
  name: 'a1',
  isolate_network: true,
  permission_profile: { network: { ...(mode === undefined ? {} : { mode }), ...(outbound && { outbound }) } },
});
const listing = (hosts: readonly string[], ports: readonly number[], all = false): Networked =>
  isolated({ insecure_allow_all: all, allow_host: hosts, allow_port: ports });
const right = (text: string): HostRight => parseRight(text, '/') as HostRight;
const permit = (config: Networked, text: string, leadsToPrivate = false) =>
  permitHost(config, right(text), { leadsToPrivate });
const deny = (config: Networked, text: string) => denyHost(config, right(text));
const reached = ({ permission_profile }: Networked): readonly string[] =>
  allowedTexts(allowedHosts(permission_profile));
const NOTHING = listing([], []);
const ALL = listing([], [], true);

describe('permitting a host', () => {
  test.each<[string, Networked, string, readonly string[]]>([
    ['where nothing was', NOTHING, 'a.com:443', ['a.com:443']],
    ['at any port where nothing was', NOTHING, 'a.com', ['a.com']],
    ['that is an address', NOTHING, '[2001:db8::1]:80', ['[2001:db8::1]:80']],
    ['without any outbound', isolated(undefined), 'a.com:443', ['a.com:443']],
    ['beside another', listing(['b.com'], [443]), 'a.com:443', ['b.com:443', 'a.com:443']],
    [
      'at the ports that are listed',
      listing(['b.com'], [443, 80]),
      'a.com',
      ['b.com:443', 'b.com:80', 'a.com:443', 'a.com:80'],
    ],
    ['at a port more', listing(['a.com'], [443]), 'a.com:80', ['a.com:443', 'a.com:80']],
    ['that a domain covers', listing(['.b.com'], [443]), 'a.b.com:443', ['.b.com:443']],
    ['that is there already', listing(['a.com'], [443]), 'a.com:443', ['a.com:443']],
    ['beside everything', ALL, 'a.com:443', ['any public host']],
    ['that is private, beside everything', ALL, '10.0.0.5:5432', ['any public host', '10.0.0.5:5432']],
    ['of this network, beside everything', ALL, 'nas.lan', ['any public host', 'nas.lan']],
    ['where any is reached at a port', listing([], [443]), 'a.com:443', ['any public host:443']],
    ['at another port there', listing([], [443]), 'a.com:80', ['any public host:443', 'any public host:80']],
    ['on no network', isolated({ insecure_allow_all: true }, 'none'), 'a.com:443', ['a.com:443']],
  ])('%s', (_, config, text, after) => {
    const changed = permit(config, text).config;
    expect(reached(changed)).toEqual(after);
    expect(permit(changed, text).config).toBe(changed);
  });

  test('that leads to a private address needs its name, whatever covers it', () => {
    expect(reached(permit(ALL, 'db.example.com:5432', true).config)).toEqual([
      'any public host',
      'db.example.com:5432',
    ]);
    expect(reached(permit(listing(['.example.com'], [443]), 'db.example.com:443', true).config)).toEqual([
      '.example.com:443',
      'db.example.com:443',
    ]);
  });

  test.each<[Networked, string, readonly string[]]>([
    [
      listing(['b.com'], [443]),
      'a.com:80',
      ['port 80 is open for b.com too, because a profile lists hosts and ports apart'],
    ],
    [
      listing([], [443]),
      'a.com:80',
      ['port 80 is open for every public host too, because a profile lists hosts and ports apart'],
    ],
    [listing(['b.com'], []), 'a.com:80', ['its profile lists no ports, so a.com is reached at any']],
    [listing(['b.com'], [443]), 'a.com', ['a.com is reached at port 443']],
    [listing(['b.com'], [80, 443]), 'a.com:443', ['a.com is reached at port 80 too']],
    [NOTHING, 'a.com:443', []],
    [ALL, 'a.com:443', ['a1 may connect to any public host already']],
    [listing(['a.com'], [443]), 'a.com:443', ['a1 may connect to a.com at port 443 already']],
  ])('of %j says what else becomes of %s', (config, text, notes) => {
    expect(permit(config, text).notes).toEqual(notes);
  });

  test('isolates what had no network, and opens nothing else to it', () => {
    const config: Networked = {
      name: 'a1',
      allow_runtime_gateway: true,
      permission_profile: {
        network: { mode: 'none', outbound: { insecure_allow_all: true, allow_host: ['b.com'] } },
      },
    };
    expect(permit(config, 'a.com:443').config).toEqual({
      name: 'a1',
      isolate_network: true,
      allow_runtime_gateway: false,
      permission_profile: {
        network: { outbound: { insecure_allow_all: false, allow_host: ['a.com'], allow_port: [443] } },
      },
    });
  });

  test.each<[PermissionProfile, string]>([
    [{}, 'a1 is not isolated, so it can connect to any host already'],
    [{ network: { outbound: { allow_host: ['b.com'] } } }, 'a1 is not isolated'],
    [
      { network: { mode: 'host' } },
      'a1 is on the network "host", so it can connect to any host of it already',
    ],
  ])('changes nothing of what is not isolated: %j', (permission_profile, note) => {
    const config = { name: 'a1', permission_profile };
    const changed = permit(config, 'a.com:443');
    expect(changed.config).toBe(config);
    expect(changed.notes[0]).toContain(note);
  });

  test.each([
    ['169.254.169.254:80', 'is a host that no permission profile opens'],
    ['127.0.0.1:5432', 'is a host that no permission profile opens'],
    ['localhost', 'is a host that no permission profile opens'],
    ['metadata.google.internal', 'is a host that no permission profile opens'],
    ['host.docker.internal:80', 'is the machine that runs a1, which no permission profile opens'],
    ['172.17.0.1', 'is the machine that runs a1, which no permission profile opens'],
  ])('is refused for %s', (text, why) => {
    for (const config of [NOTHING, ALL, listing(['a.com'], [])])
      expect(() => permit(config, text)).toThrow(why);
  });

  test('is refused where it would take others away', () => {
    expect(() => permit(listing([], [443]), '10.0.0.5:443')).toThrow('cannot add one private host to that');
  });

  test('at a port alone needs hosts', () => {
    expect(() => permit(NOTHING, ':443')).toThrow('a port alone permits nothing');
    expect(reached(permit(listing(['a.com'], [443]), ':80').config)).toEqual(['a.com:443', 'a.com:80']);
    expect(permit(listing(['a.com'], []), ':80').notes).toEqual(['port 80 is permitted to a1 already']);
  });
});

describe('denying a host', () => {
  test.each<[string, Networked, string, readonly string[]]>([
    ['beside another', listing(['a.com', 'b.com'], [443]), 'a.com', ['b.com:443']],
    ['with its port', listing(['a.com', 'b.com'], [443]), 'a.com:443', ['b.com:443']],
    ['that is the last', listing(['a.com'], [443]), 'a.com', []],
    ['at the last port', listing(['a.com'], [443]), 'a.com:443', []],
    ['at one port of its own', listing(['a.com'], [443, 80]), 'a.com:80', ['a.com:443']],
    ['at a port that is not open', listing(['a.com'], [443]), 'a.com:80', ['a.com:443']],
    ['that is a domain', listing(['.a.com', 'b.com'], []), '.a.com', ['b.com']],
    ['that is not listed', listing(['a.com'], [443]), 'b.com', ['a.com:443']],
    ['where nothing is reached', NOTHING, 'a.com', []],
    ['that nothing opens', ALL, '127.0.0.1', ['any public host']],
    ['that is private, beside everything', listing(['nas.lan'], [445], true), 'nas.lan', ['any public host']],
    ['that is private and not listed', ALL, 'nas.lan', ['any public host']],
    ['by its port', listing(['a.com'], [443, 80]), ':80', ['a.com:443']],
    ['by its last port', listing(['a.com'], [443]), ':443', []],
  ])('%s', (_, config, text, after) => {
    const changed = deny(config, text).config;
    expect(reached(changed)).toEqual(after);
    expect(deny(changed, text).config).toBe(changed);
  });

  test.each<[Networked, string, string]>([
    [ALL, 'a.com', 'a1 may connect to any public host, and a profile cannot leave a.com out of that'],
    [ALL, ':443', 'a profile cannot leave port 443 out of that'],
    [listing([], [443]), 'a.com', 'any public host at port 443, and a profile cannot leave a.com out'],
    [listing(['.a.com'], [443]), 'x.a.com', 'because its profile lists .a.com'],
    [listing(['.a.com', 'x.a.com'], [443]), 'x.a.com:443', 'because its profile lists .a.com'],
    [listing(['a.com'], []), 'a.com:443', 'at any port, and a profile cannot leave one out'],
    [listing(['a.com', 'b.com'], []), 'a.com:443', 'at any port, and a profile cannot leave one out'],
    [listing(['a.com'], []), ':443', 'a profile cannot leave port 443 out of that'],
    [{ name: 'a1', permission_profile: {} }, 'a.com', 'a1 is not isolated, so nothing keeps it from a.com'],
  ])('of %j is refused for %s, rather than promised', (config, text, why) => {
    expect(() => deny(config, text)).toThrow(expect.objectContaining({ code: 'usage/conflict' }));
    expect(() => deny(config, text)).toThrow(why);
  });

  test('says what else is gone', () => {
    expect(deny(listing(['a.com', 'b.com'], [443, 80]), 'a.com:443').notes).toEqual([
      'a.com is not reached at port 80 either',
    ]);
    expect(deny(listing(['nas.lan'], [], true), 'nas.lan').notes).toEqual([
      'nas.lan stays reachable where it is public',
    ]);
  });
});

const HOSTS = ['a.com', 'b.com', 'x.b.com', '.b.com', '10.0.0.5', 'nas.lan'];
const PORTS = [80, 443, 8443];
/** What a gateway lets through of these, as decision 0268 says. */
function lets({ permission_profile }: Networked, host: string, port: number): boolean {
  const { all, hosts, ports } = allowedHosts(permission_profile);
  const isPort = ports.length === 0 || ports.includes(port);
  const isExact = hosts.includes(host);
  if (host === '10.0.0.5' || host === 'nas.lan') return isExact && isPort;
  if (all) return true;
  const isListed = isExact || hosts.some((one) => one.startsWith('.') && `.${host}`.endsWith(one));
  return (hosts.length === 0 ? ports.length > 0 : isListed) && isPort;
}

test('whatever is permitted and denied: nothing but what was meant is lost, nothing is opened by denying', () => {
  const texts = HOSTS.flatMap((host) => [host, ...PORTS.map((port) => `${host}:${port}`)]);
  const steps = fc.array(
    fc.record({
      how: fc.constantFrom('permit', 'deny'),
      text: fc.constantFrom(...texts, ...PORTS.map((port) => `:${port}`)),
    }),
    { maxLength: 8 },
  );
  const start = fc.record({ hosts: fc.subarray(HOSTS), ports: fc.subarray(PORTS), all: fc.boolean() });
  const pairs = HOSTS.filter((host) => !host.startsWith('.')).flatMap((host) =>
    PORTS.map((port) => [host, port] as const),
  );
  fc.assert(
    fc.property(start, steps, ({ hosts, ports, all }, changes) => {
      let config = listing(hosts, ports, all);
      for (const { how, text } of changes) {
        const before = config;
        try {
          ({ config } = how === 'permit' ? permit(config, text) : deny(config, text));
        } catch (error) {
          expect(error).toBeInstanceOf(SkepError);
          continue;
        }
        for (const [host, port] of pairs) {
          if (how === 'permit' && lets(before, host, port)) expect(lets(config, host, port)).toBe(true);
          if (how === 'deny' && !lets(before, host, port)) expect(lets(config, host, port)).toBe(false);
        }
        const named = right(text);
        if (named.is === 'port' || named.host.startsWith('.')) continue;
        const ofHost = pairs.filter(([host, port]) => host === named.host && (named.port ?? port) === port);
        const open = ofHost.map(([host, port]) => lets(config, host, port));
        // Under everything, denying a private host by name is all that can be asked.
        if (how === 'deny' && !all) expect(open).not.toContain(true);
        if (how === 'permit' && named.port !== undefined) expect(open).toEqual([true]);
        if (how === 'permit') expect(open).toContain(true);
      }
    }),
    { numRuns: 2000 },
  );
}, 60_000);

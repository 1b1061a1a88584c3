import { describe, expect, test } from 'vitest';
import { commandUnderTest, controlsIn, type CommandUnderTest } from '../command-under-test.fixture.ts';
import type { Decision } from '../egress/decision.ts';

const FILES = { 'profile.json': { network: { outbound: { allow_host: ['b.example'], allow_port: [443] } } } };
const denied = (host: string, more: Partial<Decision> = {}): Decision => ({
  time: '2026-01-01T00:00:00Z',
  decision: 'denied',
  host,
  port: 443,
  via: 'proxy',
  reason: `the profile does not list ${host}`,
  count: 1,
  ...more,
});

async function isolated(decisions: readonly Decision[]): Promise<CommandUnderTest> {
  const skep = await commandUnderTest({ files: FILES });
  await skep.output('run fake:1 --name a1 --isolate-network --permission-profile ./profile.json');
  skep.runtime.decisions.set('a1', decisions);
  return skep;
}

describe('skep status', () => {
  test('shows what was refused with the line that allows it, which does', async () => {
    const skep = await isolated([
      denied('10.2.3.4', { count: 3 }),
      denied('169.254.169.254', { port: 80, never: true, reason: 'no profile can allow it' }),
      denied('b.example', { decision: 'allowed' }),
    ]);
    const shown = await skep.output('status a1');
    expect(shown).toMatch(
      /^Refused: +3 × 10\.2\.3\.4:443 – skep permit a1 10\.2\.3\.4:443\n +1 × 169\.254\.169\.254:80 \(no profile can allow it\)\n/m,
    );
    const [, line = ''] = /skep (permit a1 \S+)/.exec(shown) ?? [];
    await skep.output(line);
    expect(skep.runtime.specOf('a1')?.isolation).toMatchObject({
      hosts: ['b.example', '10.2.3.4'],
      ports: [443],
    });
  });

  test('shows ten of them to a person, and all to a script', async () => {
    const skep = await isolated(
      Array.from({ length: 12 }, (_, at) => denied(`h${at}.example`, { count: 20 - at })),
    );
    const shown = await skep.output('status a1');
    expect(shown.match(/ × h\d+/g)).toHaveLength(10);
    expect(shown).toContain('and 2 more: skep logs --denied a1');
    const { refused } = JSON.parse(await skep.output('status a1 --format json')) as { refused: object[] };
    expect(refused).toHaveLength(12);
    expect(refused[0]).toEqual({
      host: 'h0.example',
      port: 443,
      via: 'proxy',
      count: 20,
      last: '2026-01-01T00:00:00Z',
      reason: 'the profile does not list h0.example',
      permit: 'skep permit a1 h0.example:443',
    });
  });

  test('shows nothing where nothing was refused, or nothing is isolated', async () => {
    const skep = await isolated([]);
    expect(await skep.output('status a1')).not.toContain('Refused');
    await skep.output('run fake:1 --name open');
    skep.runtime.decisions.set('open', [denied('a.example')]);
    expect(await skep.output('status open')).not.toContain('Refused');
  });

  test('says so where the runtime does not answer, and shows the rest', async () => {
    const skep = await isolated([denied('a.example')]);
    skep.runtime.unreachable = true;
    const shown = await skep.output('status a1');
    expect(shown).toMatch(/^Refused: +not known, because its runtime does not answer$/m);
    expect(JSON.parse(await skep.output('status a1 --format json'))).toMatchObject({ refused: null });
  });

  test('is not steered by what a server asks for', async () => {
    const skep = await isolated([denied(`a\u001B[31m\u202E${'x'.repeat(5000)}`), denied('*')]);
    const shown = await skep.output('status a1');
    expect(controlsIn(shown)).toEqual([]);
    expect(shown.length).toBeLessThan(8_000);
    expect(shown).toContain('1 × other hosts:443');
    expect(shown).not.toContain('skep permit');
  });
});

describe('skep logs --denied', () => {
  test('lists all of it', async () => {
    const skep = await isolated([denied('a.example', { count: 2 }), denied('c.example')]);
    expect(await skep.output('logs a1 --denied')).toBe(
      [
        'LAST                   COUNT   HOST            VIA     WHY',
        '2026-01-01T00:00:00Z   2       a.example:443   proxy   the profile does not list a.example',
        '2026-01-01T00:00:00Z   1       c.example:443   proxy   the profile does not list c.example',
        '',
      ].join('\n'),
    );
  });

  test('is data in the order that a person sees, with every key', async () => {
    const skep = await isolated([
      denied('z.example'),
      denied('a.example', { port: 80 }),
      denied('a.example', { count: 2, never: true }),
    ]);
    const text = await skep.output('logs a1 --denied --format json');
    expect(JSON.parse(text)).toEqual([
      { host: 'a.example', port: 443, via: 'proxy', count: 2, last: '2026-01-01T00:00:00Z', reason: 'the profile does not list a.example', permit: null }, // prettier-ignore
      { host: 'a.example', port: 80, via: 'proxy', count: 1, last: '2026-01-01T00:00:00Z', reason: 'the profile does not list a.example', permit: 'skep permit a1 a.example:80' }, // prettier-ignore
      { host: 'z.example', port: 443, via: 'proxy', count: 1, last: '2026-01-01T00:00:00Z', reason: 'the profile does not list z.example', permit: 'skep permit a1 z.example:443' }, // prettier-ignore
    ]);
    const { refused } = JSON.parse(await skep.output('status a1 --format json')) as { refused: object[] };
    expect(refused).toEqual(JSON.parse(text));
    const none = await isolated([]);
    expect(JSON.parse(await none.output('logs a1 --denied --format json'))).toEqual([]);
    expect(await skep.refusal('logs a1 --format json')).toBe(
      'Error: --format json needs --denied: what a server wrote is printed as it is; add --denied\n',
    );
  });

  test('says that there is nothing, and why there cannot be', async () => {
    const skep = await isolated([]);
    expect(await skep.run('logs a1 --denied')).toMatchObject({
      status: 0,
      out: '',
      err: 'nothing was refused to a1\n',
    });
    await skep.output('run fake:1 --name open');
    expect(await skep.refusal('logs open --denied')).toBe(
      'Error: "open" is not isolated, so nothing is refused to it; isolate it with skep deny open --isolate-network\n',
    );
    expect(await skep.refusal('logs a1 --denied --follow')).toMatch(/^Error: .*--denied/);
  });
});

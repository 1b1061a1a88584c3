import { describe, expect, test } from 'vitest';
import { commandUnderTest } from '../command-under-test.fixture.ts';

describe('skep proxy stdio', () => {
  test.each([
    ['time', 'Error: workload "time" not found; run it once: skep run time\n'],
    ['nobody', 'Error: workload "nobody" not found; see the names with skep list --all\n'],
  ])('says how to go on where there is no workload named %s', async (name, text) => {
    const skep = await commandUnderTest();
    expect(await skep.refusal(`proxy stdio ${name}`)).toBe(text);
  });

  test.each(['', 'a b', '../a1'])('refuses %j', async (name) => {
    const skep = await commandUnderTest();
    expect(await skep.refusal(['proxy', 'stdio', name])).toContain('invalid workload name');
  });
});

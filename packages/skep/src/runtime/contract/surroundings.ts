import { describe, expect, test } from 'vitest';
import type { ContractBench } from './bench.ts';

/** What a workload is given. */
export function surroundingsContract(bench: ContractBench): void {
  describe('surroundings', () => {
    test('passes arguments and environment verbatim', async () => {
      const odd = [
        'a b',
        `"double" 'single'`,
        'line\nbreak',
        '$HOME `id` $(id)',
        'ünï © 🐝',
        '',
        '--flag=x',
        '\\',
      ];
      const env = Object.fromEntries(odd.map((value, index) => [`ODD_${index}`, value]));
      const { probe } = await bench.running({ args: odd, env });
      expect(await probe.call('probe/args')).toEqual(odd);
      for (const [name, value] of Object.entries(env))
        expect(await probe.call('probe/env', { name })).toBe(value);
    });

    test('shows nothing of the environment of the caller', async () => {
      const { probe } = await bench.running();
      for (const name of ['SKEP_CONTRACT_SECRET', 'NODE_EXTRA_CA_CERTS', 'npm_config_registry']) {
        expect(await probe.call('probe/env', { name })).toBeNull();
      }
    });
  });
}

import { describe, expect, test } from 'vitest';
import { decodeRunConfig } from './run-config.ts';
import { fromToolhive } from './import-toolhive.ts';
import { rateLimitOf } from './rate-limit.ts';

const BASE = { name: 'a1', image: 'fake:1', transport: 'stdio' };
const bucket = { maxTokens: 3, refillPeriod: '1m0s' };
const read = (more: object) => decodeRunConfig(fromToolhive({ ...BASE, ...more }, 'f').value, 'f');

describe('rate limits of a file', () => {
  test('are what the proxy is given, under the key or as a step', () => {
    const config = {
      perUser: bucket,
      tools: [{ name: 'dear', shared: { maxTokens: 1, refillPeriod: '1h' } }],
    };
    const step = { type: 'ratelimit', parameters: { namespace: '', server_name: 'a1', config } };
    for (const document of [{ rate_limit_config: config }, { middleware_configs: [step] }])
      expect(rateLimitOf(read(document).rate_limit_config)).toEqual({
        perUser: { maxTokens: 3, refillMs: 60_000 },
        tools: [{ name: 'dear', shared: { maxTokens: 1, refillMs: 3_600_000 } }],
      });
    expect(rateLimitOf(read({}).rate_limit_config)).toBeUndefined();
  });

  test.each([
    [{}, 'limits nothing'],
    [{ tools: [{ name: 'a' }] }, 'limits nothing'],
    [{ shared: { maxTokens: 0, refillPeriod: '1s' } }, 'must be a whole number from 1'],
    [{ shared: { maxTokens: 1 } }, 'is missing'],
    [{ shared: { maxTokens: 1, refillPeriod: '0s' } }, 'is not a duration'],
    [{ global: bucket }, 'has an unknown key: "global"'],
    [{ shared: bucket, tools: [{ name: 'a' }, { name: 'a' }] }, 'is there twice'],
  ])('that limit nothing or cannot be kept are refused: %j', (config, message) => {
    expect(() => read({ rate_limit_config: config })).toThrow(message);
  });

  test('that want a store elsewhere are refused', () => {
    const step = { type: 'ratelimit', parameters: { redis_addr: 'redis:6379', config: { shared: bucket } } };
    expect(() => read({ middleware_configs: [step] })).toThrow('"middleware_configs" (ratelimit)');
    expect(() => read({ middleware_configs: [{ type: 'ratelimit' }] })).toThrow(
      '"middleware_configs" (ratelimit)',
    );
  });
});

import { expect, test } from 'vitest';
import { config } from 'zod';
import { interpretSchemas } from './interpret-schemas.ts';

test('is where zod looks for its settings', () => {
  const global: { __zod_globalConfig?: unknown } = {};
  interpretSchemas(global);
  expect(global.__zod_globalConfig).toEqual({ jitless: true });
  expect(Reflect.get(globalThis, '__zod_globalConfig')).toBe(config());
});

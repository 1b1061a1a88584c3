import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { fileRows as rows } from '@skep/core/settings/file-rows.fixture.ts';
import { fromFile } from '@skep/core/settings/from-file.ts';
import { toJsonSchema } from './to-json-schema.ts';

async function read(text: string, format: 'yaml' | 'json' = 'yaml'): Promise<Record<string, unknown>> {
  const settings = await fromFile(rows, { path: 'c', text, format });
  return Object.fromEntries([...settings].map(([name, { value }]) => [name, value]));
}

test('the JSON Schema accepts what the reader accepts', async () => {
  const validate = new Ajv2020().compile(toJsonSchema(rows));
  const value = fc.constantFrom<unknown>(
    'a',
    'b',
    '30s',
    '1',
    1,
    1.5,
    -1,
    70_000,
    true,
    null,
    ['a'],
    [1],
    { A: 'x' },
    { A: 1 },
  );
  const document = fc.record(
    {
      host: value,
      port: value,
      timeout: value,
      debug: value,
      mode: value,
      volumes: value,
      env_vars: value,
      other: value,
      otel: fc.record({ rate: value }, { requiredKeys: [] }),
    },
    { requiredKeys: [] },
  );
  await fc.assert(
    fc.asyncProperty(document, async (config) => {
      const accepted = await read(JSON.stringify(config), 'json').then(
        () => true,
        () => false,
      );
      expect(validate(config), JSON.stringify(config)).toBe(accepted);
    }),
    { numRuns: 500 },
  );
});

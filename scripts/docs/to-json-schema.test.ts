import { Ajv2020 } from 'ajv/dist/2020.js';
import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { defineSettings } from '@skep/core/settings/define-settings.ts';
import { fromFile } from '@skep/core/settings/from-file.ts';
import { toJsonSchema } from './to-json-schema.ts';

const group = 'General';
const rows = defineSettings([
  { name: 'host', kind: 'string', key: 'host', group, brief: 'host' },
  { name: 'port', kind: 'int', key: 'port', group, brief: 'port', min: 0, max: 65_535 },
  { name: 'rate', kind: 'float', key: 'otel.rate', group, brief: 'rate', min: 0, max: 1 },
  { name: 'timeout', kind: 'duration', key: 'timeout', group, brief: 'timeout', default: 30_000, min: 0 },
  { name: 'debug', kind: 'bool', key: 'debug', group, brief: 'debug', default: false },
  {
    name: 'mode',
    kind: 'choice',
    key: 'mode',
    group,
    brief: 'mode',
    choices: ['a', 'b'],
    notYetValues: ['b'],
  },
  { name: 'tools', kind: 'strings', key: 'otel.tools', group, brief: 'tools' },
  { name: 'volumes', kind: 'list', key: 'volumes', group, brief: 'volumes' },
  { name: 'env', kind: 'pairs', key: 'env_vars', group, brief: 'env' },
  { name: 'token', kind: 'int', key: 'token', group, brief: 'token', secret: true },
  { name: 'later', kind: 'string', key: 'later', group, brief: 'later', notYet: true },
]);

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

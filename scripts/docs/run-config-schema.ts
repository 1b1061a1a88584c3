import { runSettings } from '../../packages/skep/src/settings/run-settings.ts';
import type { Page } from './page.ts';
import { toJsonSchema } from './to-json-schema.ts';

export const runConfigSchema: Page = {
  file: 'run-config.schema.json',
  title: 'Schema of a run configuration',
  brief: 'What `--from-config` reads, as JSON Schema, for editors.',
  // Other tools write keys of their own, which are kept.
  render: () => JSON.stringify({ ...toJsonSchema(runSettings), additionalProperties: true }, null, 2),
};

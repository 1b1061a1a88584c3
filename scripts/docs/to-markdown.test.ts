import { defineSettings } from '@skep/core/settings/define-settings.ts';
import { shownRows as rows } from '@skep/core/settings/shown-rows.fixture.ts';
import { describe, expect, test } from 'vitest';
import { toMarkdown } from './to-markdown.ts';

describe('reference tables', () => {
  test('show one table per group without empty columns', () => {
    expect(toMarkdown(rows)).toBe(`## One

| Flag | Type | Default | Meaning | Key |
| --- | --- | --- | --- | --- |
| \`-e\`, \`--env\` | pairs \`KEY=VALUE\` |  | A variable. | \`env_vars\` |
| \`--wait\` | duration | 30s | How long to wait. |  |

## Two

| Flag | Type | Default | Meaning | Variable |
| --- | --- | --- | --- | --- |
| \`-f\`, \`--foreground\` | bool | false | Stay. |  |
| \`--token\` | string |  | Token. Secret. *Not available yet.* | \`X_TOKEN\` |
| \`--mode\` | \`a\`, \`b\` |  | Mode. Not available yet: b. |  |
|  | \`docker\`, \`sandbox\` |  | Runtime. | \`X_RUNTIME\` |
`);
  });

  test('keep a bar inside its cell', () => {
    const [row] = defineSettings([
      { name: 'a', kind: 'string', flag: 'a', group: 'G', brief: 'x | y', default: '<z>' },
    ]);
    expect(toMarkdown([row])).toContain('| &lt;z> | x \\| y. |');
  });
});

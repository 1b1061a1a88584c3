import { defineSettings } from '@skep/core/settings/define-settings.ts';
import { describe, expect, test } from 'vitest';
import { toMarkdown } from './to-markdown.ts';

const rows = defineSettings([
  {
    name: 'env',
    kind: 'pairs',
    flag: 'env',
    short: 'e',
    key: 'env_vars',
    group: 'One',
    brief: 'A variable',
    placeholder: 'KEY=VALUE',
  },
  { name: 'wait', kind: 'duration', flag: 'wait', group: 'One', brief: 'How long to wait', default: 30_000 },
  {
    name: 'foreground',
    kind: 'bool',
    flag: 'foreground',
    short: 'f',
    group: 'Two',
    brief: 'Stay',
    default: false,
  },
  {
    name: 'token',
    kind: 'string',
    flag: 'token',
    env: 'X_TOKEN',
    group: 'Two',
    brief: 'Token',
    secret: true,
    notYet: true,
  },
  {
    name: 'mode',
    kind: 'choice',
    flag: 'mode',
    group: 'Two',
    brief: 'Mode',
    choices: ['a', 'b'],
    notYetValues: ['b'],
  },
  {
    name: 'runtime',
    kind: 'choice',
    env: 'X_RUNTIME',
    group: 'Two',
    brief: 'Runtime',
    choices: ['docker', 'sandbox'],
  },
]);

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

import { defineSettings } from './define-settings.ts';

/** One row of each kind, for tests of what is shown of a table. */
export const shownRows = defineSettings([
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

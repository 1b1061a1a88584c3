import { defineSettings } from './define-settings.ts';

const group = 'General';
/** One row of each kind, for tests of what is read of files into a table. */
export const fileRows = defineSettings([
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

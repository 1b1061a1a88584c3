import { defineSettings } from '@skep/core/settings/define-settings.ts';

/** `--format` of commands that show data. */
export const formatSettings = defineSettings([
  {
    name: 'format',
    kind: 'choice',
    flag: 'format',
    group: 'Output',
    brief: 'How to print',
    choices: ['text', 'json'],
    default: 'text',
  },
]);

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand } from '../cli/command.ts';
import { doorSettings, requireDoor } from '../publish/open-door.ts';
import { deleteAt, markAt } from '../publish/registry-doors.ts';

export const unpublish = defineCommand({
  usage: 'skep unpublish [flags] NAME@VERSION',
  summary: 'Delete a version of a server from a registry',
  description: [
    'It is gone for everybody, and workloads that were made of it cannot be made again. skep deprecate leaves it, with a word of warning.',
  ],
  examples: [{ command: 'skep unpublish io.acme/weather@1.2.0', what: 'Delete this version' }],
  positionals: [{ name: 'NAME@VERSION', required: true }],
  settings: [...doorSettings, ...commonSettings],
  async run({ values, positionals: [given = ''] }, context) {
    const { name, version } = entryIn(given);
    if (version === undefined) {
      throw new SkepError('usage/missing-argument', {
        message: `which version of ${printable(name)} is to be deleted?`,
        hint: `write ${printable(name)}@VERSION`,
      });
    }
    const door = await requireDoor(values, context);
    try {
      await deleteAt(door, { name, version });
      context.terminal.out(`Deleted ${printable(`${name} ${version}`)}\n`);
    } finally {
      door.close();
    }
  },
});

export const deprecate = defineCommand({
  usage: 'skep deprecate [flags] NAME[@VERSION]',
  summary: 'Say of a published server that it should not be used any more',
  description: ['All versions are meant where none is named. They stay where they are.'],
  examples: [
    {
      command: "skep deprecate io.acme/weather@1.2.0 --message 'use 2.0'",
      what: 'This version, with a reason',
    },
    { command: 'skep deprecate io.acme/weather --status active', what: 'Take it back' },
  ],
  positionals: [{ name: 'NAME', required: true }],
  settings: [
    ...settingsOf({ group: 'Publishing' }, [
      flag('string', 'message', 'Why, for those who use it', { placeholder: 'text' }),
      flag('choice', 'status', 'What is said of it', {
        choices: ['active', 'deprecated', 'deleted'],
        default: 'deprecated',
      }),
    ]),
    ...doorSettings,
    ...commonSettings,
  ],
  async run({ values: { message, status, ...flags }, positionals: [given = ''] }, context) {
    const entry = entryIn(given);
    const door = await requireDoor(flags, context);
    try {
      await markAt(door, entry, { status, statusMessage: message });
      const what = entry.version === undefined ? `All versions of ${entry.name} are` : `${given} is`;
      context.terminal.out(`${printable(what)} now ${status}\n`);
    } finally {
      door.close();
    }
  },
});

/** `NAME@VERSION`: no name of a server has an @. */
function entryIn(text: string): { readonly name: string; readonly version: string | undefined } {
  const at = text.indexOf('@');
  const [name, version] = at < 0 ? [text, undefined] : [text.slice(0, at), text.slice(at + 1)];
  if (name !== '' && version !== '') return { name, version };
  throw new SkepError('usage/invalid-value', {
    message: `invalid server ${JSON.stringify(printable(text))}`,
    hint: 'write it as NAME@VERSION, like io.acme/weather@1.2.0',
  });
}

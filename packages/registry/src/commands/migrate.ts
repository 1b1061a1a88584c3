import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, configSetting, defineCommand, type Host } from './command.ts';
import { storePlace } from '../config/database.ts';
import { migrationTarget } from '../store/schema/migrate.ts';
import { storeText, migrateStore, readSchema } from '../store/open-store.ts';
import { loadConfig } from './load-config.ts';

/** Nobody has a thousand migrations; a number beyond it is a slip of the hand. */
const MAX_STEPS = 1000;

type Direction = 'up' | 'down';

export const migrate = defineCommand({
  usage: 'skep-registry migrate up|down --config FILE [flags]',
  summary: 'Change the schema of the store',
  description: [
    'serve migrates up by itself. Migrations run in one transaction, as the migration user of the configuration; of ' +
      'several processes that migrate at the same time one does it. Going down deletes what the older schema cannot hold.',
  ],
  examples: [
    { command: 'skep-registry migrate up --config registry.yaml', what: 'to the newest schema' },
    {
      command: 'skep-registry migrate down -n 1 --config registry.yaml',
      what: 'take the last migration back',
    },
  ],
  settings: [
    ...settingsOf({ group: 'Migrating' }, [
      configSetting('the configuration file (YAML)'),
      flag('int', 'num-steps', 'how many migrations; 0 is all, which only "up" takes', {
        name: 'steps',
        short: 'n',
        default: 0,
      }),
      flag('bool', 'yes', 'do not ask', { short: 'y', default: false }),
    ]),
    ...commonSettings,
  ],
  positionals: [{ name: 'up|down', required: true }],
  async run({ values: { config, steps, yes }, positionals: [given = ''] }, host) {
    const { terminal } = host;
    const direction = directionOf(given, steps);
    const place = storePlace(await loadConfig(host, { config }), host);
    const { version } = await readSchema(place);
    const target = migrationTarget(version, direction, steps);
    terminal.err(`Store ${storeText(place)}\nSchema ${version}, target ${target}\n`);
    if (target === version) return terminal.out('Nothing to do.\n');
    if (!yes) await confirm(host, direction);
    // What was confirmed is what is done, even if somebody else has migrated meanwhile.
    const run = await migrateStore(place, (before) => {
      if (before !== version)
        throw new SkepError('store/conflict', { message: 'the schema has changed meanwhile' });
      return target;
    });
    terminal.out(`Schema is now ${run.after}.\n`);
  },
});

function directionOf(given: string, steps: number): Direction {
  if (given !== 'up' && given !== 'down') {
    throw new SkepError('usage/invalid-value', { message: `"${given}" is neither up nor down` });
  }
  if (!Number.isInteger(steps) || steps < 0 || steps > MAX_STEPS) {
    throw new SkepError('usage/invalid-value', {
      message: `--num-steps "${steps}" must be from 0 to ${MAX_STEPS}`,
    });
  }
  if (given === 'down' && steps === 0) {
    throw new SkepError('usage/missing-argument', {
      message: 'migrate down needs --num-steps',
      hint: 'name how many migrations to take back, for example -n 1',
    });
  }
  return given;
}

const QUESTION = {
  up: { text: 'Continue? (yes/no) ', answers: ['yes', 'y'] },
  down: {
    text: 'This deletes data that the older schema cannot hold. Type "yes" to continue: ',
    answers: ['yes'],
  },
} as const satisfies Record<Direction, { text: string; answers: readonly string[] }>;

async function confirm(host: Host, direction: Direction): Promise<void> {
  const { text, answers } = QUESTION[direction];
  const answer = (await host.stdin.readLine(text, 'shown'))?.trim() ?? '';
  if (answers.some((accepted) => accepted === answer)) return;
  throw new SkepError('usage/conflict', {
    message: 'not confirmed; nothing was changed',
    hint: 'answer yes, or give --yes',
  });
}

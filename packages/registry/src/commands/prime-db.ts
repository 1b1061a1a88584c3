import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { commonSettings, configSetting, defineCommand, type Host } from './command.ts';
import { storePlace } from '../config/database.ts';
import type { PostgresPlace } from '../store/postgres/connect.ts';
import { primeDatabase, primeStatements, type PrimedLogin } from '../store/postgres/prime-database.ts';
import { loadConfig } from './load-config.ts';

/** PostgreSQL cuts longer names off, and would then mean another role. */
const LONGEST_NAME_BYTES = 63;

export const primeDb = defineCommand({
  usage: 'skep-registry prime-db USERNAME --config FILE [flags]',
  summary: 'Prepare a PostgreSQL database for the application user',
  description: [
    'Connects as the migration user and makes a login for the application, with the right to read and write rows and ' +
      'nothing else. The password is read from standard input. A login that is there keeps its password. With ' +
      'database.dynamicAuth there is no password: the login becomes a member of the role rds_iam, which the migration user must be allowed to grant.',
  ],
  examples: [
    { command: 'skep-registry prime-db app --config registry.yaml < password', what: 'password from a file' },
    {
      command: 'skep-registry prime-db app --config registry.yaml --dry-run',
      what: 'see what would be done',
    },
  ],
  settings: [
    ...settingsOf({ group: 'Preparing' }, [
      configSetting('the configuration file (YAML)'),
      flag('bool', 'dry-run', 'print the SQL with the password left out, and do nothing', { default: false }),
    ]),
    ...commonSettings,
  ],
  positionals: [{ name: 'USERNAME', required: true }],
  async run({ values: { config, dryRun }, positionals: [user = ''] }, host) {
    checkName(user);
    const place = storePlace(await loadConfig(host, { config: config }), host);
    if (place.kind !== 'postgres') {
      throw new SkepError('store/invalid-settings', {
        message: 'the configuration has no database',
        hint: 'add "database" to it; an embedded store needs no preparation',
      });
    }
    if (dryRun) return host.terminal.out(`${sqlText(place, user)}\n`);
    const login = loginBy(place, place.token === undefined ? await passwordFrom(host, user) : '');
    await primeDatabase(place, { user, login });
    host.terminal.err(`User "${user}" may now use the database.\n`);
  },
});

function loginBy({ token }: PostgresPlace, password: string): PrimedLogin {
  return token === undefined ? { kind: 'password', password } : { kind: 'rds-iam' };
}

function sqlText(place: PostgresPlace, user: string): string {
  const { database, migrationUser = place.settings.user } = place.settings;
  const statements = primeStatements({ database, migrationUser, user, login: loginBy(place, '********') });
  return statements.map((statement) => `${statement};`).join('\n');
}

function checkName(user: string): void {
  const bytes = Buffer.byteLength(user);
  if (bytes > 0 && bytes <= LONGEST_NAME_BYTES && !user.includes('\0')) return;
  throw new SkepError('usage/invalid-value', {
    message: `the user name "${user}" must have 1 to ${LONGEST_NAME_BYTES} bytes`,
  });
}

async function passwordFrom(host: Host, user: string): Promise<string> {
  const password = (await host.stdin.readLine(`Password for "${user}": `, 'hidden'))?.trim() ?? '';
  if (password !== '' && !password.includes('\0')) return password;
  throw new SkepError('usage/missing-argument', {
    message: 'the password is empty',
    hint: 'type it, or redirect standard input from a file that holds it',
  });
}

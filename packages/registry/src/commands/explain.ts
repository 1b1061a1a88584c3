import { existsSync } from 'node:fs';
import { describeRefusal } from '@skep/auth/resource/authenticate.ts';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { readText } from '@skep/core/files/read-limited.ts';
import { parseLossless } from '@skep/core/json/lossless.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { printableJson, printableLines } from '@skep/core/terminal/printable.ts';
import { ANONYMOUS, authorityOf, type Authority, supposedCaller } from '../access/authority.ts';
import { accessReport, type AccessReport } from '../access/explain.ts';
import {
  accessFacts,
  type AccessQuestion,
  type AccessRecords,
} from '../api/admin/explain/access-question.ts';
import { openSignIn } from '../api/sign-in/sign-in.ts';
import type { AuthConfig } from '../config/auth.ts';
import { commonSettings, configSetting, defineCommand, formatSettings, type Host } from './command.ts';
import type { RegistryConfig } from '../config/load.ts';
import { storePlace } from '../config/database.ts';
import { openStore } from '../store/open-store.ts';
import { loadConfig } from './load-config.ts';

const rows = [
  ...settingsOf({ group: 'What decides' }, [
    configSetting('the configuration file; its sources, registries and roles count as they stand in it'),
  ]),
  ...settingsOf({ group: 'Who asks' }, [
    flag('string', 'claims', 'claims of the caller, as a JSON object or a file that holds one', {
      placeholder: 'JSON|FILE',
      excludes: ['token'],
    }),
    flag(
      'string',
      'token',
      'a file that holds a token of the caller; the identity providers of the configuration check it',
      { placeholder: 'FILE' },
    ),
  ]),
  ...settingsOf({ group: 'About what' }, [
    flag('string', 'registry', 'the gate of this registry, and its copies of the entry', {
      placeholder: 'NAME',
    }),
    flag('string', 'source', 'this source as the admin API shows it, and its copy of the entry', {
      placeholder: 'NAME',
    }),
    flag('string', 'entry', 'an entry of the store; of a skill or plugin namespace/name', {
      placeholder: 'NAME',
    }),
    flag('choice', 'type', 'what kind of entry', {
      choices: ['server', 'skill', 'plugin'],
      default: 'server',
    }),
  ]),
  ...formatSettings,
  ...commonSettings,
] as const;

export const explain = defineCommand({
  usage: 'skep-registry explain --config FILE --claims JSON|FILE [flags]',
  summary: 'Say why a caller may or may not do or see something',
  description: [
    'Prints the decisions of the very rules that the server enforces: roles, the gate of a registry, and whether an ' +
      'entry is visible, each with the first claim that fails and what would change it.',
  ],
  examples: [
    {
      command: `skep-registry explain --config registry.yaml --claims '{"org":"acme"}' --registry team`,
      what: 'may they read it?',
    },
    {
      command: 'skep-registry explain --config registry.yaml --token token.txt --entry io.acme/weather',
      what: 'why is it not in their list?',
    },
  ],
  settings: rows,
  async run({ values }, host) {
    const config = await loadConfig(host, values);
    const authority = await explainedCaller(host, values, config.auth);
    const report = accessReport(authority, await factsOf(host, config, { ...values, kind: values.type }));
    host.terminal.out(
      values.format === 'json'
        ? `${printableJson(JSON.stringify(report))}\n`
        : printableLines(inWords(report)),
    );
  },
});

/** The file counts where it and the store know the same name: what an operator asks about may not be served yet. */
async function factsOf(host: Host, config: RegistryConfig, question: AccessQuestion) {
  const { sources, registries } = config;
  const place = storePlace(config, host);
  if (place.kind === 'sqlite' && !existsSync(place.path)) {
    return accessFacts({ sources, registries, readSomeEntries: async () => Promise.resolve([]) }, question);
  }
  const store = await openStore(place, { clock: host.clock, log: silentLog });
  try {
    const records: AccessRecords = {
      sources: [...sources, ...(await store.listSources())],
      registries: [...registries, ...(await store.listRegistries())],
      readSomeEntries: (name, entries) => store.readSomeEntries(name, entries),
    };
    return await accessFacts(records, question);
  } finally {
    await store.close();
  }
}

function inWords({ mode, caller, findings }: AccessReport): string {
  const width = Math.max(...findings.map(({ subject }) => subject.length));
  const lines = findings.map(({ layer, subject, source, allowed, because, remedy, shadowedBy }) => {
    const about = source === undefined ? '' : ` (copy of ${source})`;
    const shadowed = shadowedBy === undefined ? '' : `; the copy of ${shadowedBy} is served instead`;
    const change = remedy === undefined ? '' : `; needed: ${remedy}`;
    return `${allowed ? 'yes' : 'no '}  ${layer.padEnd(8)}  ${subject.padEnd(width)}  ${because}${change}${shadowed}${about}`;
  });
  const roles = caller.roles.length === 0 ? 'no roles' : caller.roles.join(', ');
  return [`mode ${mode}, caller ${JSON.stringify(caller.subject)}, ${roles}`, ...lines, ''].join('\n');
}

const MAX_BYTES = 64 * 1024;
const LIMITS = { maxBytes: MAX_BYTES, what: 'claims' } as const;

/** The flags that say who asks. */
interface CallerFlags {
  readonly claims: string | undefined;
  readonly token: string | undefined;
}

/**
 * The caller that `explain` is about. Fails with `claims/invalid`, `file/*`, or for a token with what the identity
 * providers say about it.
 */
async function explainedCaller(
  host: Host,
  { claims, token }: CallerFlags,
  auth: AuthConfig,
): Promise<Authority> {
  if (auth.mode === 'anonymous') return ANONYMOUS;
  if (token !== undefined) return tokenCaller(host, token, auth);
  if (claims === undefined) {
    throw new SkepError('usage/missing-argument', { message: 'who asks? give --claims or --token' });
  }
  const text = /^\s*[[{]/.test(claims) ? claims : await readText(claims, LIMITS);
  const value = parseLossless(text, LIMITS);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new SkepError('claims/invalid', { message: 'claims must be a JSON object' });
  }
  return supposedCaller(auth.access, { ...value });
}

async function tokenCaller(
  host: Host,
  path: string,
  auth: Extract<AuthConfig, { mode: 'oauth' }>,
): Promise<Authority> {
  const token = await readText(path, { maxBytes: MAX_BYTES, what: 'token' });
  const door = await openSignIn(auth, { clock: host.clock, random: host.random, log: silentLog });
  if (door.kind === 'open') return ANONYMOUS;
  try {
    const outcome = await door.verifier.verify(token.trim());
    if (outcome.kind === 'identity') return authorityOf(door.mode, outcome.identity);
    if (outcome.kind === 'unavailable') throw new SkepError('auth/unavailable', { cause: outcome.cause });
    throw new SkepError('auth/unauthenticated', {
      message: describeRefusal({ kind: 'refused', error: 'invalid_token', reason: outcome.reason }, 'reason'),
    });
  } finally {
    door.close();
  }
}

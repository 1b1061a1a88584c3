import { existsSync } from 'node:fs';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { defineSettings, valuesOf } from '@skep/core/settings/define-settings.ts';
import { printableJson, printableLines } from '@skep/core/terminal/printable.ts';
import { type AccessReport, accessReport } from '../access/access-report.ts';
import {
  accessFacts,
  type AccessQuestion,
  type AccessRecords,
} from '../api/admin/explain/access-question.ts';
import { type Command, COMMON_ROWS, FORMAT_ROW } from '../command.ts';
import type { RegistryConfig } from '../config/config.ts';
import { storePlace } from '../config/store-place.ts';
import type { Host } from '../host.ts';
import { openStore } from '../store/open-store.ts';
import { explainedCaller } from './explained-caller.ts';
import { problemsError } from './problems.ts';
import { loadServed } from './serve-config.ts';

const rows = defineSettings([
  {
    name: 'config',
    kind: 'path',
    flag: 'config',
    placeholder: 'FILE',
    group: 'What decides',
    brief: 'the configuration file; its sources, registries and roles count as they stand in it; required',
  },
  {
    name: 'claims',
    kind: 'string',
    flag: 'claims',
    placeholder: 'JSON|FILE',
    group: 'Who asks',
    brief: 'claims of the caller, as a JSON object or a file that holds one',
    excludes: ['token'],
  },
  {
    name: 'token',
    kind: 'string',
    flag: 'token',
    placeholder: 'FILE',
    group: 'Who asks',
    brief: 'a file that holds a token of the caller; the identity providers of the configuration check it',
  },
  {
    name: 'registry',
    kind: 'string',
    flag: 'registry',
    placeholder: 'NAME',
    group: 'About what',
    brief: 'the gate of this registry, and its copies of the entry',
  },
  {
    name: 'source',
    kind: 'string',
    flag: 'source',
    placeholder: 'NAME',
    group: 'About what',
    brief: 'this source as the admin API shows it, and its copy of the entry',
  },
  {
    name: 'entry',
    kind: 'string',
    flag: 'entry',
    placeholder: 'NAME',
    group: 'About what',
    brief: 'an entry of the store; of a skill or plugin namespace/name',
  },
  {
    name: 'type',
    kind: 'choice',
    flag: 'type',
    group: 'About what',
    brief: 'what kind of entry',
    choices: ['server', 'skill', 'plugin'],
    default: 'server',
  },
  FORMAT_ROW,
  ...COMMON_ROWS,
]);

type ExplainValues = ReturnType<typeof valuesOf<typeof rows>>;

export const explain: Command = {
  usage: 'explain --config FILE --claims JSON|FILE [flags]',
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
  rows,
  run: async (host, settings) => {
    const values = valuesOf(rows, settings);
    const config = await servedConfig(host, values.config);
    const authority = await explainedCaller(host, values, config.auth);
    const report = accessReport(authority, await factsOf(host, config, questionOf(values)));
    host.stdout.write(
      values.format === 'json'
        ? `${printableJson(JSON.stringify(report))}\n`
        : printableLines(inWords(report)),
    );
    return 0;
  },
};

async function servedConfig(host: Host, path: string | undefined): Promise<RegistryConfig> {
  if (path === undefined) {
    throw new SkepError('usage/missing-argument', { message: 'the flag "--config" is missing' });
  }
  const loaded = await loadServed(host, { config: path });
  if ('problems' in loaded) throw problemsError(path, loaded.problems, host.stderr);
  return loaded.config;
}

function questionOf({ registry, source, entry, type }: ExplainValues): AccessQuestion {
  return {
    kind: type,
    ...(registry === undefined ? {} : { registry }),
    ...(source === undefined ? {} : { source }),
    ...(entry === undefined ? {} : { entry }),
  };
}

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

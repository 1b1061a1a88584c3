import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { describe, expect, test } from 'vitest';
import { readCatalogue } from './registry-file.ts';
import { runPlans, type RunPlan } from './run-plan.ts';

// Real catalogues, where they are present beside the repository.
const data = resolve(import.meta.dirname, '../../../../../shared/data/catalog-toolhive');
const FILES = ['native-2025-12-15.json', 'native-2026-01-25.json', 'native-2026-02-20.json'];

interface NativeVariable {
  readonly name: string;
  readonly required?: boolean;
  readonly secret?: boolean;
  readonly default?: string;
}

/** As the files have it, read without the code under test. */
interface NativeEntry {
  readonly image?: string;
  readonly url?: string;
  readonly transport: string;
  readonly target_port?: number;
  readonly proxy_port?: number;
  readonly permissions?: object;
  readonly provenance?: object;
  readonly args?: readonly string[];
  readonly tools?: readonly string[];
  readonly env_vars?: readonly NativeVariable[];
  readonly headers?: readonly NativeVariable[];
}

type NativeMap = Readonly<Record<string, NativeEntry>>;

const read = (file: string): string => readFileSync(resolve(data, file), 'utf8');

/** What a run of the entry has to decide. */
function wanted(entry: NativeEntry): object {
  const { image, url, transport, target_port: port, proxy_port: proxyPort, permissions, provenance } = entry;
  const { args = [], tools = [], env_vars: env = [], headers = [] } = entry;
  const common = { transport, proxyPort, tools, env: env.map(requirement) };
  return url === undefined
    ? {
        ...common,
        target: { kind: 'image', reference: image },
        targetPort: transport === 'stdio' ? undefined : port,
        args,
        permissions,
        provenance,
      }
    : { ...common, target: { kind: 'remote', url }, headers: headers.map(requirement) };
}

const requirement = ({ name, required = false, secret = false, default: value }: NativeVariable): unknown =>
  expect.objectContaining({
    name,
    required,
    secret,
    ...(value === undefined || value === '' ? {} : { default: value }),
  });

describe.skipIf(!existsSync(data))(
  'every entry of real catalogues (skipped where ../shared/data is absent)',
  () => {
    test.each(FILES)('%s resolves to the settings that it states', (file) => {
      const { servers, remote_servers: remotes } = JSON.parse(read(file)) as Record<string, NativeMap>;
      const native = new Map(Object.entries({ ...servers, ...remotes }));
      const { entries } = readCatalogue(read(file), { label: file });
      expect(entries).toHaveLength(native.size);
      for (const entry of entries) {
        const key = entry.name.slice(entry.name.indexOf('/') + 1);
        const stated = native.get(key) ?? native.get(entry.name);
        if (entry.kind !== 'server' || stated === undefined) expect.fail(`${entry.name} is not in the file`);
        const plans = runPlans(entry.document);
        expect(plans, entry.name).toHaveLength(1);
        const settings = wanted(stated);
        const decided = Object.fromEntries(
          Object.keys(settings).map((name) => [name, plans[0]?.[name as keyof RunPlan]]),
        );
        expect(decided, entry.name).toEqual(settings);
      }
    });

    test('the current format resolves to the same as the older one', () => {
      const plansOf = (file: string) =>
        new Map(
          readCatalogue(read(file), { label: file }).entries.flatMap((entry) =>
            entry.kind === 'server' ? [[entry.name, runPlans(entry.document)] as const] : [],
          ),
        );
      expect(plansOf('upstream-2026-02-20.json')).toEqual(plansOf('native-2026-02-20.json'));
    });
  },
);

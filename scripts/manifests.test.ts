import { readFileSync } from 'node:fs';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import type { Field } from '@skep/core/settings/field.ts';
import { blocksOf } from '../e2e/page-blocks.ts';
import { migrate } from '../packages/registry/src/commands/migrate.ts';
import { serve } from '../packages/registry/src/commands/serve.ts';
import { ROUTES } from '../packages/registry/src/api/routes.ts';
import { loadConfig } from '../packages/registry/src/config/load.ts';
import { overridesFrom } from '../packages/registry/src/config/overrides.ts';
import { fromToolhive } from '../packages/skep/src/run-config/import-toolhive.ts';
import { decodeRunConfig } from '../packages/skep/src/run-config/run-config.ts';
import { runSettings } from '../packages/skep/src/settings/run-settings.ts';
import { readYaml } from '../packages/registry/src/shape/yaml-text.ts';
import {
  chartFolder,
  committedObjects,
  EXAMPLES,
  manifestFile,
  objectsOf,
  sourceDigest,
  type Example,
  type Manifest,
  type PodSpec,
} from './deployment.ts';

// The charts of deploy/helm as the committed manifests show them (decision 0421). e2e/deploy.test.ts holds that Helm writes these.

const each = EXAMPLES.map((example) => [example.file, example] as const);

const podsOf = (objects: readonly Manifest[]): readonly { kind: string; pod: PodSpec }[] =>
  objects.flatMap(({ kind, spec }) =>
    spec?.template === undefined ? [] : [{ kind, pod: spec.template.spec }],
  );

const configOf = (objects: readonly Manifest[]): string =>
  Object.values(objects.find(({ kind }) => kind === 'ConfigMap')?.data ?? {})[0] ?? '';

const isOfRegistry = ({ chart }: Example): boolean => chart === 'skep-registry';

test.each(each)('%s was rendered since its chart and values have changed', (_, example) => {
  // When it was not: npm run build:manifests.
  const text = readFileSync(manifestFile(example.file), 'utf8');
  expect(text).toContain(`\n# Rendered from ${sourceDigest(example)}\n`);
});

test.each(each)('every pod of %s is held as hard as a cluster can', (_, { file }) => {
  const pods = podsOf(committedObjects(file));
  expect(pods.length).toBeGreaterThan(0);
  for (const { pod } of pods) {
    expect(pod.securityContext).toMatchObject({
      runAsNonRoot: true,
      runAsUser: 65_532,
      seccompProfile: { type: 'RuntimeDefault' },
    });
    for (const container of pod.containers) {
      expect(container.securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const mounts = (container.volumeMounts ?? []).map(({ name }) => name);
      expect((pod.volumes ?? []).map(({ name }) => name).toSorted()).toEqual(mounts.toSorted());
    }
  }
});

test.each([
  ['registry-anonymous', { Deployment: false }],
  ['registry-postgresql', { Deployment: true, Job: false }],
  ['proxy-image', { Deployment: true }],
  ['proxy-url', { Deployment: false }],
  ['proxy-replicas', { Deployment: false }],
])('the pods of %s have a token of the cluster only where they ask it something', (file, expected) => {
  const tokens = podsOf(committedObjects(file)).map(({ kind, pod }) => [
    kind,
    pod.automountServiceAccountToken,
  ]);
  expect(Object.fromEntries(tokens)).toEqual(expected);
});

test.each(each)('the probes of %s ask ports and paths that the program has', (_, example) => {
  const paths = isOfRegistry(example)
    ? ROUTES.flatMap((route) => (route.listener === 'internal' ? route.paths : []))
    : ['/health'];
  const [deployment] = podsOf(committedObjects(example.file)).filter(({ kind }) => kind === 'Deployment');
  const [container] = deployment?.pod.containers ?? [];
  const port = isOfRegistry(example)
    ? { name: 'internal', containerPort: 8081 }
    : { name: 'http', containerPort: 8080 };
  expect(container?.ports).toContainEqual(port);
  const probes = [container?.startupProbe, container?.livenessProbe, container?.readinessProbe];
  for (const probe of probes) {
    expect(probe?.httpGet?.port ?? probe?.tcpSocket?.port).toBe(port.name);
    if (probe?.httpGet) expect(paths).toContain(probe.httpGet.path);
  }
  expect(container?.readinessProbe?.httpGet?.path).toBe(isOfRegistry(example) ? '/readiness' : '/health');
});

test.each(each)('the words and variables of %s are those of the program', async (_, example) => {
  for (const { kind, pod } of podsOf(committedObjects(example.file))) {
    const [container] = pod.containers;
    const [command = '', ...words] = container?.args ?? [];
    expect(command).toBe(isOfRegistry(example) ? (kind === 'Job' ? 'migrate' : 'serve') : 'run');
    const fields: readonly Field[] = isOfRegistry(example)
      ? (kind === 'Job' ? migrate : serve).settings
      : runSettings;
    const known = fields.map(({ flag }) => flag);
    const flags = words.filter((word) => word.startsWith('--')).map((word) => word.replace(/^--|=.*$/g, ''));
    expect(flags.filter((flag) => !known.includes(flag))).toEqual([]);
    if (command === 'serve') expect(words).toContain('--internal-address=:8081');
    const variables = (container?.env ?? []).map(({ name }) => name);
    const read = new Set(
      overridesFrom(Object.fromEntries(variables.map((name) => [name, 'x']))).map(({ from }) => from),
    );
    const others = /^(?:SKEP_RUNTIME|SKEP_SECRETS_PROVIDER|SKEP_SECRET_\w+|XDG_STATE_HOME)$/;
    expect(variables.filter((name) => !(isOfRegistry(example) ? read.has(name) : others.test(name)))).toEqual(
      [],
    );
  }
});

test.each(each)(
  'the ConfigMap of %s is a configuration that the program takes, without a secret',
  async (_, example) => {
    const objects = committedObjects(example.file);
    const text = configOf(objects);
    expect(text.replace(/"password_file": "\/run\/secrets\/[^"]*"/, '')).not.toMatch(
      /password|secret"?: "?[^[{]/i,
    );
    if (!isOfRegistry(example)) {
      expect(
        decodeRunConfig(fromToolhive(JSON.parse(text), 'server.json').value, 'server.json'),
      ).toMatchObject({
        name: example.release,
        port: 8080,
      });
      return;
    }
    const folder = await mkdtemp(path.join(os.tmpdir(), 'skep-manifest-'));
    onTestFinished(() => rm(folder, { recursive: true }));
    await writeFile(path.join(folder, 'registry.yaml'), text);
    const loaded = await loadConfig({
      path: 'registry.yaml',
      workingDirectory: folder,
      defaultStorePath: ':memory:',
      overrides: [],
    });
    expect(loaded).toHaveProperty('config');
  },
);

test.each(each)('values of secrets of %s come from Secrets that somebody else has made', (_, { file }) => {
  const objects = committedObjects(file);
  expect(objects.filter(({ kind }) => kind === 'Secret')).toEqual([]);
  for (const { pod } of podsOf(objects))
    for (const { name, valueFrom } of pod.containers[0]?.env ?? [])
      if (/PASSWORD|SKEP_SECRET_/.test(name))
        expect(valueFrom).toEqual({ secretKeyRef: { name: expect.any(String), key: expect.any(String) } });
});

test.each([
  ['docs/guide/run-in-a-cluster.md', 'Role', 'proxy-image'],
  ['docs/guide/catalogue-a-cluster.md', 'ClusterRole', 'registry-postgresql'],
])('the rights of %s are those that the chart gives', async (page, kind, file) => {
  const block = await blocksOf(page);
  const [said] = objectsOf(block('yaml', `kind: ${kind}\n`));
  const given = committedObjects(file).find((one) => one.kind === kind);
  expect(said?.rules?.length).toBeGreaterThan(2);
  expect(given?.rules).toEqual(said?.rules);
});

test.each(['skep-registry', 'skep-proxy'])(
  'the schema of %s knows each value, and the chart is of this version',
  async (chart) => {
    const read = async (name: string): Promise<unknown> => {
      const parsed = readYaml(await readFile(path.join(chartFolder(chart), name), 'utf8'));
      return 'value' in parsed ? parsed.value : undefined;
    };
    const values = (await read('values.yaml')) as object;
    const { properties } = (await read('values.schema.json')) as { readonly properties: object };
    expect(Object.keys(properties).toSorted()).toEqual([...Object.keys(values), 'global'].toSorted());
    const { version } = (await read('../../../package.json')) as { readonly version: string };
    expect(await read('Chart.yaml')).toMatchObject({ version, appVersion: version });
  },
);

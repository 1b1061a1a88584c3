import { hash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { readYaml } from '../packages/registry/src/shape/yaml-text.ts';

/** What is written to deploy/manifests: a release of a chart with a file of values. */
export interface Example {
  /** The file of values below deploy/values, and the one of objects below deploy/manifests. */
  readonly file: string;
  readonly chart: 'skep-registry' | 'skep-proxy';
  readonly release: string;
  readonly namespace: string;
}

export const EXAMPLES: readonly Example[] = [
  { file: 'registry-anonymous', chart: 'skep-registry', release: 'skep-registry', namespace: 'skep' },
  { file: 'registry-postgresql', chart: 'skep-registry', release: 'skep-registry', namespace: 'skep' },
  { file: 'proxy-image', chart: 'skep-proxy', release: 'notes', namespace: 'mcp' },
  { file: 'proxy-url', chart: 'skep-proxy', release: 'tools', namespace: 'mcp' },
  { file: 'proxy-replicas', chart: 'skep-proxy', release: 'shared-tools', namespace: 'mcp' },
];

export const deployFolder = path.resolve(import.meta.dirname, '../deploy');
export const valuesFile = (name: string): string => path.join(deployFolder, 'values', `${name}.yaml`);
export const manifestFile = (name: string): string => path.join(deployFolder, 'manifests', `${name}.yaml`);
export const chartFolder = (name: string): string => path.join(deployFolder, 'helm', name);

/** Any object of a cluster, as far as a reader needs it. */
export interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly namespace?: string;
    readonly labels?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  readonly rules?: readonly object[];
  readonly spec?: { readonly template?: { readonly spec: PodSpec } };
}

export interface PodSpec {
  readonly automountServiceAccountToken?: boolean;
  readonly securityContext?: object;
  readonly containers: readonly PodContainer[];
  readonly volumes?: readonly { readonly name: string }[];
}

type Probe = {
  readonly httpGet?: { readonly path: string; readonly port: string };
  readonly tcpSocket?: { readonly port: string };
};

interface PodContainer {
  readonly name: string;
  readonly args: readonly string[];
  readonly env?: readonly { readonly name: string; readonly value?: string; readonly valueFrom?: object }[];
  readonly ports?: readonly { readonly name: string; readonly containerPort: number }[];
  readonly startupProbe?: Probe;
  readonly livenessProbe?: Probe;
  readonly readinessProbe?: Probe;
  readonly securityContext?: object;
  readonly volumeMounts?: readonly {
    readonly name: string;
    readonly mountPath: string;
    readonly readOnly?: boolean;
  }[];
}

/** The objects of a text with several documents. */
export function objectsOf(text: string): readonly Manifest[] {
  return text.split(/^---$/m).flatMap((one) => {
    const read = readYaml(one);
    if ('problems' in read) throw new Error(JSON.stringify(read.problems));
    return read.value === null ? [] : [read.value as Manifest];
  });
}

/** The objects of a committed manifest. */
export const committedObjects = (name: string): readonly Manifest[] =>
  objectsOf(readFileSync(manifestFile(name), 'utf8'));

/** Changes with the chart and the values of an example, so that it is seen without Helm whether they were rendered since. */
export function sourceDigest({ file, chart }: Example): string {
  const folder = chartFolder(chart);
  const files = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.join(entry.parentPath, entry.name));
  const texts = [...files.toSorted(), valuesFile(file)].map((one) => readFileSync(one, 'utf8'));
  return hash('sha256', JSON.stringify(texts)).slice(0, 16);
}

/** What is committed for an example, of what Helm renders of it. */
export function manifestOf(example: Example, rendered: string): string {
  const { file, chart, release } = example;
  const head = [
    `# The chart ${chart} with deploy/values/${file}.yaml, called ${release}. Written by \`npm run build:manifests\`; a test`,
    '# compares them. Set the image, the namespace and what is named example before you apply it.',
    `# Rendered from ${sourceDigest(example)}`,
  ];
  return `${head.join('\n')}\n${rendered.replace(/^# Source: .*\n/gm, '')}`;
}

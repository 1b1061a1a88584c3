import { SkepError } from '@skep/core/errors/skep-error.ts';
import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import path from 'node:path';
import { pipeline } from 'node:stream/promises';
import type { Pack } from 'tar-stream';
import { listOf, members, nullish, recordOf, text } from '@skep/core/settings/shape.ts';
import { GATEWAY_NODE_FLAGS } from '../../../egress/node-flags.ts';
import { BUILD_LABEL } from '../../../protocol/build-recipe.ts';
import type { RuntimeEnvironment } from '../../environment.ts';
import type { Report } from '../../runtime.ts';
import { buildIdOf } from '../build-id.ts';
import type { EngineClient } from '../client.ts';
import { importImage } from '../import-image.ts';
import { findImage, removeImage } from '../images.ts';
import { MANAGED, MANAGED_LABEL, OWNER_LABEL } from '../labels.ts';
import { ensureImage } from '../pull.ts';
import { readAnswer } from '../read-answer.ts';
import { nodeFiles, type NodeFile } from './node-files.ts';

/** What a container of a gateway is started with. */
export interface GatewayImage {
  readonly reference: string;
  /** Program and arguments. */
  readonly entrypoint: readonly string[];
  readonly env: readonly string[];
}

/** What it takes to make a gateway. */
export interface GatewayMaker {
  readonly client: EngineClient;
  readonly environment: RuntimeEnvironment;
  /** Reads the one file that a gateway runs from. */
  readonly script: () => Promise<Buffer>;
}

/** With a host, because Podman looks for a name without one at a registry. */
const REPOSITORY = 'localhost/skeplocal/gateway';
/** Of images that hold a gateway. */
const GATEWAY_LABEL = 'skep.gateway';
const GATEWAY_IN_IMAGE = '/gateway.mjs';
/** Where the running Node is none of the engine's system: one that is, by its content. `SKEP_EGRESS_IMAGE` names another. */
const NODE_BASE =
  'docker.io/library/node:24-alpine@sha256:d32cdf619f63fe0471182d08996dd516c6275bb5fd31ae06e55a570bd9e1ad43';
const silent: Report = { step() {}, detail() {} };

/**
 * The image that gateways run from, which is made where the engine does not have it: of the running Node, its libraries and
 * one file, without any network. Where the engine has another system than this machine, or `SKEP_EGRESS_IMAGE` names an
 * image with Node, that one is the base. An earlier one of this user goes. Fails with `runtime/engine-refused`,
 * `runtime/image-not-found`, `runtime/build-failed` or `runtime/unavailable`.
 */
export async function ensureGatewayImage(maker: GatewayMaker): Promise<GatewayImage> {
  const { client, environment } = maker;
  const script = await maker.script();
  const named = environment.env['SKEP_EGRESS_IMAGE'] ?? '';
  if (named === '' && (await runsHere(client, environment))) {
    const files = await nodeFiles(environment.execPath);
    const inputs = files.map(({ source, target, version }) => `${source} ${target} ${version}`);
    const reference = tagOf(script, [process.version, ...inputs]);
    const folders = new Set(files.slice(1).map(({ target }) => path.dirname(target)));
    if (!(await findImage(client, reference))) {
      const labels = labelsOf(environment);
      const content = (body: Pack): Promise<void> => fill(body, script, files);
      await importImage(client, { reference, labels, what: 'the gateway', content });
      await removeEarlier(client, environment, reference);
    }
    return {
      reference,
      entrypoint: [files[0]?.target ?? 'node', ...GATEWAY_NODE_FLAGS, GATEWAY_IN_IMAGE],
      // Libraries lie where this machine has them, and its list of such places does not come along.
      env: [`LD_LIBRARY_PATH=${[...folders].join(':')}`],
    };
  }
  const base = named === '' ? NODE_BASE : named;
  const reference = tagOf(script, [base]);
  if (!(await findImage(client, reference))) {
    await buildOn(client, { environment, reference, script, base });
    await removeEarlier(client, environment, reference);
  }
  return { reference, entrypoint: ['node', ...GATEWAY_NODE_FLAGS, GATEWAY_IN_IMAGE], env: [] };
}

/**
 * The one file that a gateway runs from (`scripts/bundle.ts`): beside the program, or where a checkout has it once it was
 * bundled. Fails with `runtime/unavailable`.
 */
export async function gatewayScript(): Promise<Buffer> {
  const fromSources = import.meta.filename.endsWith('.ts');
  const place = fromSources ? '../../../../../../dist/skep/gateway.mjs' : '../gateway.mjs';
  try {
    return await readFile(path.resolve(import.meta.dirname, place));
  } catch (cause) {
    throw new SkepError('runtime/unavailable', {
      message: 'gateway.mjs is missing beside the program, so nothing can be isolated on a container engine',
      hint: 'install skep again; in a checkout, run "npm run build"',
      cause,
    });
  }
}

function tagOf(script: Buffer, inputs: readonly string[]): string {
  const hash = createHash('sha256')
    .update(script)
    .update(`\0${[GATEWAY_IN_IMAGE, ...inputs].join('\0')}`);
  return `${REPOSITORY}:${hash.digest('hex').slice(0, 16)}`;
}

const versionShape = members({ Os: text, Arch: text });
/** As Node and as Go call a machine. */
const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };

/** True where the running Node runs in containers of that engine too. */
async function runsHere(client: EngineClient, { platform }: RuntimeEnvironment): Promise<boolean> {
  const { body } = await client.ask('tell its version', { path: '/version' });
  const { Os, Arch } = readAnswer(versionShape, body);
  return platform === 'linux' && Os === 'linux' && ARCHITECTURES[process.arch] === Arch;
}

const labelsOf = (environment: RuntimeEnvironment, buildId = buildIdOf(environment)): readonly string[] => [
  MANAGED,
  `${GATEWAY_LABEL}=true`,
  `${OWNER_LABEL}=${environment.owner}`,
  `${BUILD_LABEL}=${buildId}`,
];

interface Wanted {
  readonly environment: RuntimeEnvironment;
  readonly reference: string;
  readonly script: Buffer;
}

/** Everything is root's and nobody may write it. */
async function fill(body: Pack, script: Buffer, files: readonly NodeFile[]): Promise<void> {
  body.entry({ name: GATEWAY_IN_IMAGE.slice(1), mode: 0o444 }, script);
  for (const { source, target, size } of files)
    await pipeline(createReadStream(source), body.entry({ name: target.slice(1), size, mode: 0o555 }));
  body.finalize();
}

async function buildOn(
  client: EngineClient,
  { environment, reference, script, base }: Wanted & { readonly base: string },
): Promise<void> {
  const signal = new AbortController().signal;
  await ensureImage(client, {
    reference: base,
    credentials: { env: environment.env },
    report: silent,
    signal,
  });
  const buildId = buildIdOf(environment);
  const lines = [
    `FROM ${base}`,
    `LABEL ${labelsOf(environment, buildId).join(' ')}`,
    `COPY gateway.mjs ${GATEWAY_IN_IMAGE}`,
  ];
  const recipe = { files: { Dockerfile: `${lines.join('\n')}\n`, 'gateway.mjs': script.toString('utf8') } };
  // Seldom needed, and much comes with it.
  const { buildImage } = await import('../build.ts');
  await buildImage(client, { recipe, tag: reference, buildId, subject: 'gateway', report: silent, signal });
}

const listedShape = listOf(
  members({ Id: text, RepoTags: nullish(listOf(text)), Labels: nullish(recordOf(text)) }),
);

/** Images that this user's gateways ran from before, as long as no container is made of them. */
async function removeEarlier(
  client: EngineClient,
  { owner }: RuntimeEnvironment,
  current: string,
): Promise<void> {
  const filters = { label: [`${GATEWAY_LABEL}=true`, `${OWNER_LABEL}=${owner}`] };
  const { body } = await client.ask('list images', { path: '/images/json', filters });
  for (const { Id, RepoTags, Labels } of readAnswer(listedShape, body)) {
    const isCurrent = (RepoTags ?? []).includes(current);
    if (!isCurrent && Labels?.[OWNER_LABEL] === owner && Labels[MANAGED_LABEL] === 'true')
      await removeImage(client, Id);
  }
}

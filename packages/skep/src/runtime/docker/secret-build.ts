import { once } from 'node:events';
import { StringDecoder } from 'node:string_decoder';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { members, text, wholeNumber } from '@skep/core/settings/shape.ts';
import type { SecretBuild } from './build-request.ts';
import { buildFailure } from './build-failure.ts';
import type { EngineClient, Hijacked } from './client.ts';
import { containerPath, removeContainer } from './containers.ts';
import { Demultiplexer } from './demultiplex.ts';
import { refused } from './failure.ts';
import { removeImage } from './images.ts';
import { readAnswer } from './read-answer.ts';
import { runBuild, Transcript } from './run-build.ts';
import { SECRETS_DIRECTORY, secretLines, WITH_SECRETS } from './secret-script.ts';

const madeShape = members({ Id: text });
const waitShape = members({ StatusCode: wholeNumber() });

/**
 * A build whose fetching command is given secrets: it runs in a container of its own, which gets them over its standard
 * input into memory, so that no layer, history, configuration or log of the engine has them (decision 0297). What the
 * builder stage has before and after it is built as ever. Throws as `buildImage`.
 */
export async function buildWithSecrets(client: EngineClient, request: SecretBuild): Promise<void> {
  const { recipe, buildId } = request;
  const tag = `skeplocal/building:${buildId}`;
  const files = { ...recipe.files, 'skep/with-secrets.sh': WITH_SECRETS };
  try {
    await runBuild(client, {
      ...request,
      tag,
      recipe: { ...recipe, files: { ...files, Dockerfile: recipe.head } },
    });
    const fetched = await fetchInContainer(client, tag, request);
    const Dockerfile = `FROM ${fetched} AS builder\n${recipe.tail}`;
    await runBuild(client, { ...request, recipe: { ...recipe, files: { ...recipe.files, Dockerfile } } });
  } finally {
    await removeImage(client, tag);
  }
}

/** The id of an image of what the container has when the command is done. */
async function fetchInContainer(client: EngineClient, image: string, request: SecretBuild): Promise<string> {
  const { secrets } = request;
  const mark = `${request.buildId}-end`;
  const body = {
    Image: image,
    Entrypoint: ['/bin/sh', '/skep/with-secrets.sh'],
    Cmd: [mark, ...request.recipe.fetch],
    OpenStdin: true,
    StdinOnce: true,
    AttachStdin: true,
    AttachStdout: true,
    AttachStderr: true,
    HostConfig: {
      Tmpfs: { [SECRETS_DIRECTORY]: 'rw,nosuid,nodev,size=4m,mode=0700' },
      LogConfig: { Type: 'none' },
    },
  };
  const creating = { method: 'POST', path: '/containers/create', body, signal: request.signal } as const;
  const { Id: id } = readAnswer(
    madeShape,
    (await client.ask('create a container for a build', creating)).body,
  );
  try {
    const query = { stream: '1', stdin: '1', stdout: '1', stderr: '1' };
    const attached = await client.hijack({ method: 'POST', path: containerPath(id, '/attach'), query });
    if ('status' in attached) throw refused('attach to a build', attached);
    const transcript = new Transcript(request.report, secrets.hidden);
    const status = await runAttached(
      client,
      id,
      { attached, transcript, input: `${secretLines(secrets)}${mark}\n` },
      request.signal,
    );
    if (status !== 0)
      throw buildFailure(request.subject, transcript.text(), `it ended with status ${status}`);
    const committing = {
      method: 'POST',
      path: '/commit',
      query: { container: id, pause: '0' },
      signal: request.signal,
    } as const;
    const made = readAnswer(madeShape, (await client.ask('keep what was fetched', committing)).body);
    return made.Id.replace(/^sha256:/, '');
  } finally {
    await removeContainer(client, id, 'remove the container of a build');
  }
}

interface Run {
  readonly attached: Hijacked;
  readonly transcript: Transcript;
  readonly input: string;
}

async function runAttached(
  client: EngineClient,
  id: string,
  { attached: { socket, head }, transcript, input }: Run,
  signal: AbortSignal,
): Promise<number> {
  const end = (): void => void socket.destroy();
  signal.addEventListener('abort', end, { once: true });
  try {
    if (head.length > 0) socket.unshift(head);
    const frames = new Demultiplexer();
    const decoders = { stdout: new StringDecoder('utf8'), stderr: new StringDecoder('utf8') };
    socket.on('data', (chunk: Buffer) =>
      frames.take(chunk, (stream, bytes) => transcript.take(decoders[stream].write(bytes))),
    );
    socket.on('error', end);
    const over = once(socket, 'close');
    socket.once('end', end);
    await client.ask('start a build', { method: 'POST', path: containerPath(id, '/start'), signal });
    socket.write(input);
    await over;
    if (signal.aborted) throw new SkepError('runtime/aborted', { cause: signal.reason });
    const waiting = { method: 'POST', path: containerPath(id, '/wait'), signal } as const;
    return readAnswer(waitShape, (await client.ask('wait for a build', waiting)).body).StatusCode;
  } finally {
    signal.removeEventListener('abort', end);
    end();
  }
}

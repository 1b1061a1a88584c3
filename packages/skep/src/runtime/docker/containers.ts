import { listOf, members, nullish, recordOf, text, wholeNumber } from '@skep/core/settings/shape.ts';
import type { Observed, SeenFiles } from '../runtime.ts';
import type { EngineClient } from './client.ts';
import { engineMessage, refused } from './failure.ts';
import { findImage } from './images.ts';
import { isAuxiliary, MANAGED } from './labels.ts';
import { listedIds, observedContainer } from './observed.ts';
import { readAnswer } from './read-answer.ts';

export const containerPath = (name: string, rest = ''): string =>
  `/containers/${encodeURIComponent(name)}${rest}`;

/** Ids of the containers, running or not, that meet the engine's filters. */
export async function containerIds(
  client: EngineClient,
  filters: Readonly<Record<string, readonly string[]>>,
): Promise<string[]> {
  const request = { path: '/containers/json', query: { all: '1' }, filters };
  return listedIds((await client.ask('list containers', request)).body);
}

const listedShape = listOf(members({ Id: text, Labels: nullish(recordOf(text)) }));

/** Ids of the containers, running or not, that are workloads: of what Skep made, not what only belongs to one. */
export async function workloadIds(client: EngineClient): Promise<readonly string[]> {
  const request = { path: '/containers/json', query: { all: '1' }, filters: { label: [MANAGED] } };
  const all = readAnswer(listedShape, (await client.ask('list containers', request)).body);
  return all.filter(({ Labels }) => !isAuxiliary(Labels)).map(({ Id }) => Id);
}

/** A workload by name or id; undefined when there is none. */
export async function inspect(client: EngineClient, name: string): Promise<Observed | undefined> {
  const { status, body } = await client.ask(`inspect "${name}"`, { path: containerPath(name, '/json') }, 404);
  if (status === 404) return undefined;
  const observed = observedContainer(body);
  return isAuxiliary(observed.labels) ? undefined : observed;
}

/** Podman refuses one that ends by itself while it is being removed, and takes it when it is asked again. */
const ENDED_MEANWHILE = /container state improper/;
const MAX_REMOVALS = 3;

/** Removes it, whatever it does; waits where another caller is removing it at this moment. The engine's status. Idempotent. */
export async function removeContainer(client: EngineClient, name: string, what: string): Promise<number> {
  const request = { method: 'DELETE', path: containerPath(name), query: { force: '1', v: '1' } } as const;
  for (let left = MAX_REMOVALS; ; left -= 1) {
    const answer = await client.call(request);
    if (answer.status === 409) {
      const query = { condition: 'removed' };
      await client.call({ method: 'POST', path: containerPath(name, '/wait'), query });
    }
    if (answer.status < 300 || answer.status === 404 || answer.status === 409) return answer.status;
    if (left === 1 || !ENDED_MEANWHILE.test(engineMessage(answer.body))) throw refused(what, answer);
  }
}

const imageShape = members({ Image: text, Config: members({ Image: text }) });

/** True unless the engine has another image by now under the name that the container was made from. */
export async function isFromCurrentImage(client: EngineClient, name: string): Promise<boolean> {
  const { status, body } = await client.ask(`inspect "${name}"`, { path: containerPath(name, '/json') }, 404);
  if (status === 404) return true;
  const { Image, Config } = readAnswer(imageShape, body);
  const now = await findImage(client, Config.Image);
  return now === undefined || bare(now.id) === bare(Image);
}

/** The id of the image that a container was made from, whatever its tag means by now. */
export async function imageOf(client: EngineClient, name: string): Promise<string | undefined> {
  const { status, body } = await client.ask(`inspect "${name}"`, { path: containerPath(name, '/json') }, 404);
  return status === 404 ? undefined : `sha256:${bare(readAnswer(imageShape, body).Image)}`;
}

/** Podman leaves the algorithm out. */
const bare = (id: string): string => id.replace(/^sha256:/, '');

const changesShape = nullish(listOf(members({ Path: text, Kind: wholeNumber() })));
/** `Kind` of a path that the image does not have. */
const ADDED = 1;
/** What engines put into every container themselves, and what is meant to be lost. */
const NOT_KEPT =
  /^\/(?:dev|proc|sys|run|tmp|etc\/(?:hosts|hostname|resolv\.conf|mtab))(?:\/|$)|^\/\.dockerenv$/;

/** True when the server in a container has added files to what came with its image. */
export async function hasOwnFiles(client: EngineClient, name: string): Promise<boolean> {
  const request = { path: containerPath(name, '/changes') };
  const { status, body } = await client.ask(`tell what changed in "${name}"`, request, 404);
  if (status === 404) return false;
  const changes = readAnswer(changesShape, body) ?? [];
  return changes.some(({ Path, Kind }) => Kind === ADDED && !NOT_KEPT.test(Path));
}

/** What an engine puts beside every server that it starts with an init of its own. */
const ENGINES_OWN = new Set(['/sbin/docker-init', '/run/podman-init']);
/** As many of the paths that a server changed as are told. */
const MAX_TOLD = 2_000;

/** What the server in a container changed beside its mounts, by the engine's comparison with its image. */
export async function seenFiles(client: EngineClient, name: string): Promise<SeenFiles> {
  const unseen = ['which files it read', 'whether it wrote to what is mounted'];
  const request = { path: containerPath(name, '/changes') };
  const { status, body } = await client.ask(`tell what changed in "${name}"`, request, 404);
  if (status === 404)
    return { paths: new Map(), complete: false, unseen: ['what it did with files', ...unseen] };
  const all = (readAnswer(changesShape, body) ?? [])
    .map(({ Path }) => Path)
    .filter((path) => !NOT_KEPT.test(path));
  // Directories above what changed count as changed for an engine.
  const above = new Set(all.map((path) => path.slice(0, path.lastIndexOf('/'))));
  const changed = all.filter((path) => !above.has(path) && !ENGINES_OWN.has(path));
  const more = changed.length > MAX_TOLD ? ['some of the many files that it changed'] : [];
  const seen = changed.slice(0, MAX_TOLD).map((path) => [path, { changes: true, there: true }] as const);
  return { paths: new Map(seen), complete: false, unseen: [...unseen, ...more] };
}

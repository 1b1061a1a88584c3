import {
  listOf,
  members,
  nullish,
  optional,
  recordOf,
  text,
  type ShapeType,
} from '@skep/core/settings/shape.ts';
import { BUILD_LABEL } from '../../protocol/build-recipe.ts';
import { isLocalImage } from '../../protocol/image-tag.ts';
import type { RuntimeEnvironment } from '../environment.ts';
import { isRunning } from '../spares.ts';
import type { EngineClient, EngineRequest } from './client.ts';
import { isAuxiliary, MANAGED, NAME_LABEL, OWNER_LABEL } from './labels.ts';
import { removeContainer } from './containers.ts';
import { removeImage } from './images.ts';
import { removeUnused, sparesOf } from './network/left-networks.ts';
import { removeNetwork } from './network/workload-networks.ts';
import { readAnswer } from './read-answer.ts';

const shape = listOf(
  members({
    Id: text,
    /** Containers only: what it runs from. */
    Image: optional(text),
    /** Images only. */
    RepoTags: nullish(listOf(text)),
    Labels: nullish(recordOf(text)),
  }),
);

/**
 * Removes what builds of this user left on the engine: containers of steps that were interrupted, then images and
 * layers that no container uses. What `keep` names stays, and what a person gave a name of their own.
 */
export async function sweepBuilds(
  client: EngineClient,
  environment: RuntimeEnvironment,
  keep: readonly string[],
): Promise<void> {
  for (const { Id } of await built(client, '/containers/json', environment)) {
    await removeContainer(client, Id, `remove container "${Id}"`);
  }
  // Removing an image removes its untagged parents, so of a list some are gone when their turn comes.
  for (const { Id, RepoTags } of await built(client, '/images/json', environment)) {
    const tags = (RepoTags ?? []).filter((tag) => tag !== '<none>:<none>');
    // Podman puts a host before names that have none.
    const [own, others] = [tags.filter(isOurs), tags.filter((tag) => !isOurs(tag))];
    if (others.length > 0 || tags.some((tag) => keep.includes(tag.replace(/^localhost\//, '')))) continue;
    for (const one of tags.length === 0 ? [Id] : own) await removeImage(client, one);
  }
}

const isOurs = (tag: string): boolean => /^(?:localhost\/|docker\.io\/)?skeplocal\//.test(tag);

const partShape = listOf(members({ Id: text, Labels: nullish(recordOf(text)) }));

/**
 * Removes the gateways and networks of this user that belong to no workload: what programs left that were interrupted
 * while they made or removed one, and what was made ahead by programs that are gone.
 */
export async function sweepNetworks(
  client: EngineClient,
  { owner, isAlive = () => false }: RuntimeEnvironment,
): Promise<void> {
  const filters = { label: [MANAGED, `${OWNER_LABEL}=${owner}`] };
  const find = async (path: string, query: EngineRequest['query'] = {}) =>
    readAnswer(partShape, (await client.ask('list what was made', { path, query, filters })).body).filter(
      ({ Labels }) => Labels?.[OWNER_LABEL] === owner && Labels[NAME_LABEL] !== undefined,
    );
  const containers = await find('/containers/json', { all: '1' });
  const workloads = new Set(
    containers.filter((one) => !isAuxiliary(one.Labels)).map(({ Labels }) => Labels?.[NAME_LABEL]),
  );
  const isLeft = ({ Labels }: (typeof containers)[number]) => !workloads.has(Labels?.[NAME_LABEL]);
  for (const { Id } of containers.filter(isLeft))
    await removeContainer(client, Id, `remove container "${Id}"`);
  for (const { Id } of (await find('/networks')).filter(isLeft)) await removeNetwork(client, Id);
  const spares = await sparesOf(client, owner);
  await removeUnused(
    client,
    spares.filter(({ maker }) => !isRunning(maker, isAlive)),
  );
}

/**
 * What carries a build token of this user. Containers inherit the token of their image: those of workloads have a
 * name label, or are auxiliary, those that a person made run from a tag; a step of a build runs from a layer without one.
 */
async function built(
  client: EngineClient,
  path: '/containers/json' | '/images/json',
  { owner }: RuntimeEnvironment,
): Promise<ShapeType<typeof shape>> {
  const query = { all: path === '/containers/json' ? '1' : '0' };
  const request = { path, query, filters: { label: [BUILD_LABEL] } };
  const { body } = await client.ask('list what was built', request);
  return readAnswer(shape, body)
    .filter(({ Labels }) => Labels?.[BUILD_LABEL]?.startsWith(`${owner}-`) === true)
    .filter(({ Labels, Image }) => Labels?.[NAME_LABEL] === undefined && !isLocalImage(Image ?? ''))
    .filter(({ Labels }) => !isAuxiliary(Labels));
}

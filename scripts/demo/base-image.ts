import { NPX } from '../../packages/skep/src/protocol/npx.ts';
import { ensureNodeBase } from '../../e2e/images.ts';
import type { Engine } from './engine.ts';
import type { Screen } from './screen.ts';

const OWN_IMAGE = 'skep-demo/node:24';

/**
 * Flags that give `skep run` a base image for its build: none where the public one is present or can be pulled; where
 * no image registry can be reached, one made from the Node of this machine.
 */
export async function ensureBaseImage({ client }: Engine, screen: Screen): Promise<readonly string[]> {
  const present = await client.call({ path: `/images/${NPX.baseImage}/json` });
  if (present.status === 200) {
    screen.done(`base image ${NPX.baseImage} is here`);
    return [];
  }
  const [fromImage = '', tag = ''] = NPX.baseImage.split(':');
  screen.note(`pulling base image ${NPX.baseImage}`);
  const pulled = await client.call({ method: 'POST', path: '/images/create', query: { fromImage, tag } });
  // The engine answers 200 and reports a failed pull in the last line of the body.
  if (pulled.status === 200 && !JSON.stringify(pulled.body).includes('error')) return [];
  screen.note('no image registry can be reached; making a base image from the Node of this machine');
  await ensureNodeBase(OWN_IMAGE);
  screen.done(`base image ${OWN_IMAGE}`);
  return ['--runtime-image', OWN_IMAGE];
}

/** Removes what `ensureBaseImage` made. */
export async function removeBaseImage({ client }: Engine): Promise<void> {
  await client.call({ method: 'DELETE', path: `/images/${OWN_IMAGE}` });
}

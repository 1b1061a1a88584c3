import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import type { RuntimeEnvironment } from '../environment.ts';
import { findKubernetes, namespaceOf } from './find-cluster.ts';

async function folder(): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), 'skep-cluster-'));
  onTestFinished(() => rm(path, { recursive: true, force: true }));
  return path;
}

describe('a cluster is looked for', () => {
  const find = async (env: Readonly<Record<string, string>>, named: boolean) =>
    findKubernetes({ env, home: await folder() } as RuntimeEnvironment, undefined, named);

  test('where nobody asked for one only from within one', async () => {
    expect(await find({ KUBECONFIG: '/nowhere/config' }, false)).toEqual({
      refusals: [{ strategy: 'kubernetes', why: 'this runs in no cluster', hint: expect.any(String) }],
    });
  });

  test.each<[string, Readonly<Record<string, string>>, boolean, RegExp]>([
    ['by the variables of a pod', { KUBERNETES_SERVICE_HOST: '10.0.0.1' }, false, /of the service account/],
    [
      'by its name, where KUBECONFIG says',
      { KUBECONFIG: '/nowhere/named', KUBERNETES_SERVICE_HOST: '10.0.0.1' },
      true,
      /\/nowhere\/named/,
    ],
    ['by its name, in the home directory else', {}, true, /\.kube\/config/],
  ])('%s', async (_how, env, named, why) => {
    const found = await find(env, named);
    expect(found).toMatchObject({ refusals: [{ strategy: 'kubernetes', why: expect.stringMatching(why) }] });
  });
});

describe('its namespace is', () => {
  const variable = { namespace: 'b' };
  const account = 'a\n';
  test.each<[string, { choice?: object; context?: string; account?: string }, string]>([
    ['that of the service account', { choice: variable, context: 'c', account }, 'a'],
    ['that of the variable', { choice: variable, context: 'c' }, 'b'],
    ['that of the kubeconfig', { context: 'c' }, 'c'],
    ['default', {}, 'default'],
    [
      'of no account where a kubeconfig is meant',
      { choice: { kubeconfig: '/k' }, context: 'c', account },
      'c',
    ],
  ])('%s', async (_what, said, expected) => {
    const there = await folder();
    if (said.account !== undefined) await writeFile(join(there, 'namespace'), said.account);
    expect(await namespaceOf(said.choice ?? {}, said.context, there)).toBe(expected);
  });

  test.each(['../other', 'A', '-a', 'x'.repeat(64)])('never %j', async (namespace) => {
    await expect(namespaceOf({ namespace }, undefined, await folder())).rejects.toMatchObject({
      code: 'runtime/unavailable',
    });
  });
});

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
  test.each<[string, object, string | undefined, string | undefined, string]>([
    ['that of the service account', { namespace: 'b' }, 'c', 'a\n', 'a'],
    ['that of the variable', { namespace: 'b' }, 'c', undefined, 'b'],
    ['that of the kubeconfig', {}, 'c', undefined, 'c'],
    ['default', {}, undefined, undefined, 'default'],
    ['not that of an account where a kubeconfig is meant', { kubeconfig: '/k' }, 'c', 'a\n', 'c'],
  ])('%s', async (_what, choice, ofContext, ofAccount, expected) => {
    const account = await folder();
    if (ofAccount !== undefined) await writeFile(join(account, 'namespace'), ofAccount);
    expect(await namespaceOf(choice, ofContext, account)).toBe(expected);
  });

  test.each(['../other', 'A', '-a', 'x'.repeat(64)])('never %j', async (namespace) => {
    await expect(namespaceOf({ namespace }, undefined, await folder())).rejects.toMatchObject({
      code: 'runtime/unavailable',
    });
  });
});

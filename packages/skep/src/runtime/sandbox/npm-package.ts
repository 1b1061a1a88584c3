import { realpath, rm, writeFile } from 'node:fs/promises';
import path from 'node:path';
import { npmSpecifier } from '../npm/failure.ts';
import { findNpm } from '../npm/program.ts';
import { Upstream } from '../npm/upstream.ts';
import { checkTree } from './check-tree.ts';
import { compileAhead } from './compile-ahead.ts';
import { GATEWAY, npmInstall } from './npm-install.ts';
import { treeId, treeManifest } from './package-trees.ts';
import { dropTreeProgram } from './tree-program.ts';
import type { FoundPackage, Lookup } from './found-package.ts';

/**
 * An npm package as the person's registries say it is today. Scripts of packages do not run; when all is there the server
 * is started once, confined and without a network, for what Node compiles of it. Throws `runtime/package-not-found`,
 * `runtime/prefetch-failed`, `runtime/npm-missing` or `runtime/aborted`.
 */
export async function findNpmPackage({ environment, source, request }: Lookup): Promise<FoundPackage> {
  using unfinished = new DisposableStack();
  const upstream = unfinished.use(await Upstream.open(environment, await request.caCert?.()));
  request.report.step(`Looking up ${npmSpecifier(source)}`);
  const { version, packument } = await upstream.resolve(source, request.signal);
  const specifier = `${source.name}@${version}`;
  const held = unfinished.move();
  return {
    reference: treeId('npm', source.name, version),
    specifier,
    async fetch({ bubblewrap, stage, report, signal }) {
      const node = await realpath(environment.execPath);
      const tree = path.join(stage, 'tree');
      await writeManifest(tree, source.name);
      await npmInstall({
        bubblewrap,
        upstream,
        stage,
        specifier,
        signal,
        npm: await findNpm(environment),
        node,
        known: { name: source.name, packument },
        onDownload: (count) => report.detail(`${count} downloads`),
      });
      // npm could write to it, and what it says decides which program runs.
      await writeManifest(tree, source.name);
      await dropTreeProgram(tree);
      await checkTree({ tree, specifier, registry: GATEWAY });
      report.step(`Compiling ${specifier}`);
      await compileAhead({ bubblewrap, node, stage, signal });
    },
    [Symbol.dispose]: () => held.dispose(),
  };
}

/** Replaces whatever is there: it may be a link by now. */
export async function writeManifest(tree: string, packageName: string): Promise<void> {
  const file = path.join(tree, 'package.json');
  await rm(file, { recursive: true, force: true });
  await writeFile(file, treeManifest(packageName), { flag: 'wx', mode: 0o644 });
}

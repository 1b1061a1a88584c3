import { execFileSync } from 'node:child_process';
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { smallInternet, PUBLIC, type SmallInternet } from '../fixtures/small-internet.ts';
import { debianPostgres } from '../postgres/binaries.ts';
import { Cluster } from '../postgres/cluster.ts';
import type { PublicServer } from './table.ts';

/** What one server finds: directories by the names that the table has for them, and an internet with its service. */
export interface World extends AsyncDisposable {
  readonly directories: Readonly<Record<string, string>>;
  readonly internet: SmallInternet;
}

const REPOSITORY = `
git init -q .
printf 'module bees\\n\\ngo 1.26\\n' >go.mod
printf 'package main\\n\\nfunc main() {}\\n' >main.go
git add .
git -c user.name=ada -c user.email=ada@example.com commit -qm 'say something about bees'`;

/** Makes it below that directory, as its user's own. Only root can. */
export async function makeWorld(server: PublicServer, below: string, uid: number): Promise<World> {
  await using made = new AsyncDisposableStack();
  const directories = Object.fromEntries(
    ['files', 'repository', 'postgres'].map((name) => [name, path.join(below, name)]),
  );
  for (const directory of Object.values(directories)) mkdirSync(directory);
  const { files = '', repository = '', postgres = '' } = directories;
  writeFileSync(path.join(files, 'notes.txt'), 'buy milk');
  execFileSync('sh', ['-ec', REPOSITORY], { cwd: repository });
  if (Object.keys(server.mounts ?? {}).includes('postgres')) {
    chmodSync(postgres, 0o777);
    const settings = [`unix_socket_directories=${postgres}`];
    const cluster = await Cluster.start({ bin: debianPostgres, settings });
    made.defer(() => cluster.stop());
    symlinkSync(`.s.PGSQL.${cluster.port}`, path.join(postgres, '.s.PGSQL.5432'));
  }
  execFileSync('chown', ['-R', `${uid}:${uid}`, files, repository]);
  const { bodies = {} } = server;
  const names = Object.fromEntries(Object.keys(bodies).map((host) => [host, [[PUBLIC]]]));
  const internet = made.use(await smallInternet(names, [], bodies));
  execFileSync('chmod', ['-R', 'a+rX', path.dirname(internet.certificate)]);
  const held = made.move();
  return { directories, internet, [Symbol.asyncDispose]: () => held.disposeAsync() };
}

import { existsSync, readFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';

// The baseline of a start: reads the catalogue files, writes each entry of them into an empty store, else reads what is there,
// holds all of it, and listens. It checks nothing and prepares no answer.
const [, , storeFile = '', ...catalogueFiles] = process.argv;
const isFirst = !existsSync(storeFile);
const store = new DatabaseSync(storeFile);
const entries = new Map<string, unknown>();
if (isFirst) storeAll();
for (const { name, document } of store.prepare('SELECT name, document FROM entries').iterate())
  entries.set(String(name), JSON.parse(String(document)));
store.close();
const server = createServer((_request, response) => void response.end(String(entries.size)));
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
});
process.once('SIGTERM', () => process.exit(0));

function storeAll(): void {
  store.exec(
    'PRAGMA journal_mode = WAL; CREATE TABLE entries (name TEXT PRIMARY KEY, document TEXT NOT NULL)',
  );
  const insert = store.prepare('INSERT INTO entries VALUES (?, ?)');
  store.exec('BEGIN');
  for (const file of catalogueFiles)
    for (const one of JSON.parse(readFileSync(file, 'utf8')).data.servers)
      insert.run(one.name, JSON.stringify(one));
  store.exec('COMMIT');
}

import { createServer } from 'node:http';
import { DatabaseSync } from 'node:sqlite';
import { firstUncovered } from '@skep/auth/claims/covers.ts';
import { parseClaims } from '@skep/auth/claims/claims.ts';
import { callerClaims, guardedEntries } from './guarded.ts';

// The obvious way to build a governed list, as a baseline: for each request a query, then claims compared in code until
// the page is full. It does not even check a token: the caller is a number in a header.

const database = new DatabaseSync(':memory:');
database.exec('CREATE TABLE entry (name TEXT PRIMARY KEY, claims TEXT, document TEXT)');
const insert = database.prepare('INSERT INTO entry VALUES (?, ?, ?)');
database.exec('BEGIN');
for (const { name, claims, document } of guardedEntries()) insert.run(name, claims, document);
database.exec('COMMIT');
const all = database.prepare('SELECT name, claims, document FROM entry ORDER BY name');

function page(caller: number, limit: number): string {
  const held = callerClaims(caller);
  const servers: unknown[] = [];
  for (const row of all.iterate()) {
    if (firstUncovered(held, parseClaims(JSON.parse(String(row['claims']))), 'all') !== undefined) continue;
    servers.push({ server: JSON.parse(String(row['document'])), _meta: {} });
    if (servers.length === limit) break;
  }
  return JSON.stringify({ servers, metadata: { count: servers.length } });
}

const server = createServer((request, response) => {
  const body = page(Number(request.headers['x-caller']), 100);
  response.writeHead(200, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
});
process.once('SIGTERM', () => process.exit(0));

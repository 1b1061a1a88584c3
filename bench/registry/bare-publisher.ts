import { Client } from 'pg';

/**
 * What a publish is measured against: a program that only stores, with the same driver and as many connections as there are
 * publishers. Arguments: port, database, connections, seconds. Prints how many it stored per second.
 */
const [port = '', database = '', connections = '', seconds = ''] = process.argv.slice(2);

const clients = await Promise.all(
  Array.from({ length: Number(connections) }, async () => {
    const client = new Client({ host: '127.0.0.1', port: Number(port), database, user: 'postgres' });
    await client.connect();
    return client;
  }),
);
await clients[0]?.query(
  'create table if not exists published (name text primary key, document text not null)',
);

const started = performance.now();
const end = started + 1000 * Number(seconds);
let stored = 0;
await Promise.all(
  clients.map(async (client) => {
    while (performance.now() < end) {
      stored += 1;
      const name = `io.bench/bare-${process.pid}-${stored}`;
      await client.query('begin');
      await client.query('insert into published (name, document) values ($1, $2)', [name, documentOf(name)]);
      await client.query('commit');
    }
  }),
);
process.stdout.write(String(stored / ((performance.now() - started) / 1000)));
await Promise.all(clients.map((client) => client.end()));

/** As the registry stores what the bench publishes. */
function documentOf(name: string): string {
  return JSON.stringify({
    $schema: 'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json',
    name,
    description: '',
    version: '1.0.0',
    remotes: [{ type: 'streamable-http', url: 'https://bench.test/mcp' }],
  });
}

import { readFileSync } from 'node:fs';
import { createServer } from 'node:http';

// The baseline: node:http and nothing else, sending the body of the one file for every request, with the headers of the
// other where there is one.
const [, , bodyFile = '', headersFile] = process.argv;
const body = readFileSync(bodyFile);
const headers: Record<string, string> =
  headersFile === undefined
    ? { 'content-type': 'application/json; charset=utf-8', 'content-length': String(body.length) }
    : JSON.parse(readFileSync(headersFile, 'utf8'));
const server = createServer((_request, response) => {
  response.writeHead(200, headers);
  response.end(body);
});
server.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.stdout.write(`${typeof address === 'object' && address !== null ? address.port : 0}\n`);
});
process.once('SIGTERM', () => process.exit(0));

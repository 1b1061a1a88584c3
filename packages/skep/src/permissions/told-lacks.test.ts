import * as fc from 'fast-check';
import { expect, test } from 'vitest';
import { toldHosts, toldPaths } from './told-lacks.ts';

test.each([
  ["Error: ENOENT: no such file or directory, open '/home/ann/notes/a.txt'", '/home/ann/notes/a.txt', false],
  ["[Error: EACCES: permission denied, scandir '/srv/data'] {", '/srv/data', false],
  ["Error: EROFS: read-only file system, mkdir '/srv/out'", '/srv/out', true],
  ["FileNotFoundError: [Errno 2] No such file or directory: '/srv/a b'", '/srv/a b', false],
  ["PermissionError: [Errno 13] Permission denied: '/srv/x'", '/srv/x', false],
  ["OSError: [Errno 30] Read-only file system: '/srv/x'", '/srv/x', true],
  ['panic: open /srv/x.json: permission denied', '/srv/x.json', false],
  ['stat /srv/x: no such file or directory', '/srv/x', false],
  ['cat: /srv/x: No such file or directory', '/srv/x', false],
  ['ls: /srv/x: read-only file system', '/srv/x', true],
])('%s names a path', (line, path, wantsWrite) => {
  expect(toldPaths(['Starting', line])).toEqual([{ path, wantsWrite }]);
});

test.each(['opened /srv/x', 'ENOENT', "ENOENT: open 'relative'", 'listening on /srv/x: ready', ''])(
  '%j names none',
  (line) => expect(toldPaths([line])).toEqual([]),
);

test.each([
  ['Error: getaddrinfo ENOTFOUND api.example.com', [{ host: 'api.example.com' }]],
  ['getaddrinfo EAI_AGAIN api.example.com', [{ host: 'api.example.com' }]],
  [
    "HTTPSConnectionPool(host='api.example.com', port=443): Max retries",
    [{ host: 'api.example.com', port: 443 }],
  ],
  ['dial tcp: lookup api.example.com on 8.8.8.8:53: no such host', [{ host: 'api.example.com' }]],
  ['connect ENETUNREACH 10.0.0.5:5432', [{ host: '10.0.0.5', port: 5432 }]],
  ['curl: (6) Could not resolve host: api.example.com', [{ host: 'api.example.com' }]],
  ['nothing of that', []],
])('%s names hosts', (line, hosts) => expect(toldHosts([line])).toEqual(hosts));

test('a server that writes whatever it likes is read in time', () => {
  const worst = [
    'ENOENT'.repeat(150),
    `${'/a'.repeat(500)}: `,
    '[Errno 2]'.repeat(100),
    `lookup ${'a.'.repeat(490)}`,
  ];
  const lines = Array.from({ length: 5_000 }, (_, at) => worst[at % worst.length] ?? '');
  // Of this thread: others may keep the machine busy.
  const before = process.threadCpuUsage();
  toldPaths(lines);
  toldHosts(lines);
  const { user, system } = process.threadCpuUsage(before);
  expect(user + system).toBeLessThan(1_000_000);
  fc.assert(
    fc.property(fc.array(fc.string()), (said) => {
      for (const { path } of toldPaths(said)) expect(path).toMatch(/^\//);
    }),
  );
});

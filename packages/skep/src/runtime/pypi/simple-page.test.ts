import { expect, test } from 'vitest';
import { readSimplePage } from './simple-page.ts';

const base = new URL('https://index.test/simple/my-server/');
const json = 'application/vnd.pypi.simple.v1+json';
const page = (text: string, type: string) => readSimplePage(text, { type, base, project: 'my-server' });

const SHA = 'a'.repeat(64);

test('JSON and HTML tell the same of a file', () => {
  const files = [
    {
      filename: 'My_Server-1.2-py3-none-any.whl',
      url: '../../files/My_Server-1.2-py3-none-any.whl',
      hashes: { md5: 'bb', sha256: SHA },
      'requires-python': '>=3.10',
      'core-metadata': { sha256: SHA },
      yanked: 'broken',
    },
    { filename: 'my-server-1.1.tar.gz', url: 'https://files.test/my-server-1.1.tar.gz', yanked: false },
  ];
  const html = `<!DOCTYPE html><html><body>
    <a href="../../files/My_Server-1.2-py3-none-any.whl#sha256=${SHA}" data-requires-python="&gt;=3.10"
       data-yanked="broken" data-core-metadata="sha256=${SHA}">My_Server-1.2-py3-none-any.whl</a><br>
    <A HREF='https://files.test/my-server-1.1.tar.gz'>my-server-1.1.tar.gz</A></body></html>`;
  const expected = [
    {
      filename: 'My_Server-1.2-py3-none-any.whl',
      version: '1.2',
      url: new URL('https://index.test/files/My_Server-1.2-py3-none-any.whl'),
      hash: ['sha256', SHA],
      metadata: ['sha256', SHA],
      requiresPython: '>=3.10',
      yanked: 'broken',
    },
    {
      filename: 'my-server-1.1.tar.gz',
      version: '1.1',
      url: new URL('https://files.test/my-server-1.1.tar.gz'),
    },
  ];
  expect(page(JSON.stringify({ files }), json)).toEqual(expected);
  expect(page(html, 'text/html')).toEqual(expected);
});

test.each([
  ['a path', '../../etc/passwd-1.0.tar.gz', 'https://x.test/1'],
  ['another project', 'other-1.0.tar.gz', 'https://x.test/1'],
  ['no version', 'my-server-latest.tar.gz', 'https://x.test/1'],
  ['what pip cannot install', 'my-server-1.0.exe', 'https://x.test/1'],
  ['a file of this machine', 'my-server-1.0.tar.gz', 'file:///etc/passwd'],
  ['a line break', 'my-server-1.0\n.tar.gz', 'https://x.test/1'],
])('a file with the name or address of %s is none', (_what, filename, url) => {
  expect(page(JSON.stringify({ files: [{ filename, url }] }), json)).toEqual([]);
});

test.each([
  ['{"files":1}', json],
  ['[]', json],
  ['no JSON', json],
  ['<?xml version="1.0"?>', 'text/html'],
  ['', 'text/html'],
])('%j is no page of an index', (text, type) => {
  expect(page(text, type)).toBeUndefined();
});

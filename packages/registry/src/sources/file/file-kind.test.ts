import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { fileUrlSource } from './file-kind.ts';
import { fetchAll, scriptedClient, type ScriptedAnswer } from '../scripted-client.fixture.ts';

const idle = new AbortController().signal;
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

function served(...answers: ScriptedAnswer[]) {
  const client = scriptedClient((_request, index) => answers[index] ?? { status: 500 });
  const source = fileUrlSource({ url: 'https://ann:pw@files.example/r.json?sig=x' }, client.opener);
  return { ...client, source };
}

test('reads a document, with the credentials in a header and in no message', async () => {
  const { source, requests, limits, stillOpen } = served({ body: '{}' });
  expect(await fetchAll(source, idle)).toEqual({ bytes: Buffer.from('{}'), hash: sha256('{}') });
  expect(source.label).toBe('https://files.example/r.json');
  expect(requests[0]?.url.href).toBe('https://files.example/r.json?sig=x');
  expect(requests[0]?.headers).toEqual({
    authorization: `Basic ${Buffer.from('ann:pw').toString('base64')}`,
  });
  expect(limits).toEqual([{ timeoutMs: 30_000, maxBytes: 104_857_600 }]);
  expect(stillOpen()).toBe(0);
});

test('asks whether the document changed once the caller holds it', async () => {
  const { source, requests } = served(
    { body: '1', headers: { etag: '"1"', 'last-modified': 'Sat, 01 Jan 2028 00:00:00 GMT' } },
    { status: 304 },
    { body: '2', headers: { etag: '"2"' } },
    { body: '2', headers: { etag: '"2"' } },
  );
  const { hash } = await fetchAll(source, idle);
  expect(await source.fetch(idle, hash)).toBeUndefined();
  expect(requests[1]?.headers).toMatchObject({
    'if-none-match': '"1"',
    'if-modified-since': 'Sat, 01 Jan 2028 00:00:00 GMT',
  });
  expect(await source.fetch(idle, hash)).toMatchObject({ hash: sha256('2') });
  // Storing failed, so the caller still holds the first state: nothing conditional is asked, and it gets the content.
  expect(await source.fetch(idle, hash)).toMatchObject({ hash: sha256('2') });
  expect(requests[3]?.headers).not.toHaveProperty('if-none-match');
});

test('the hash tells that nothing changed where the server does not', async () => {
  const { source } = served({ body: '1' }, { body: '1' });
  const { hash } = await fetchAll(source, idle);
  expect(await source.fetch(idle, hash)).toBeUndefined();
});

test.each([204, 206, 304])('an unasked status %s is a failure', async (status) => {
  await expect(served({ status }).source.fetch(idle)).rejects.toMatchObject({
    code: 'fetch/bad-status',
    message: `"https://files.example/r.json" answered with status ${status} instead of a document`,
  });
});

test('a failed request closes the client and is not remembered', async () => {
  const { source, stillOpen } = served(
    { body: '1', headers: { etag: '"1"' } },
    { status: 500 },
    { status: 304 },
  );
  const { hash } = await fetchAll(source, idle);
  await expect(source.fetch(idle, hash)).rejects.toMatchObject({ code: 'fetch/bad-status' });
  expect(stillOpen()).toBe(0);
  expect(await source.fetch(idle, hash)).toBeUndefined();
});

test.each(['file:///etc/passwd', 'ftp://x/', 'nonsense', ''])('%j is no URL of a document', (url) => {
  expect(() => fileUrlSource({ url }, scriptedClient(() => ({})).opener)).toThrow(
    expect.objectContaining({ code: 'fetch/invalid-url' }),
  );
});

import { expect, test } from 'vitest';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import { ToolCounts } from '../call/tool-counts.ts';
import { postJson } from '../doubles/http-client.ts';
import { newSession, runningProxy } from '../doubles/running-proxy.ts';
import { scriptedHttpServer } from '../doubles/scripted-http-server.ts';
import { scriptedServer, type Script } from '../doubles/scripted-server.ts';
import { manualClock } from '@skep/core/time/doubles/manual-clock.ts';
import { silentLog } from '@skep/core/log/log.ts';
import { openParts } from './parts.ts';

const services = {
  clock: manualClock(),
  log: silentLog,
  random: () => 0,
  name: 'test',
  transport: 'stdio',
  trustProxyHeaders: false,
  skepVersion: '1',
  toolCounts: new ToolCounts(),
} as const;
const refused = { filter: [''] };

test('no settings make no steps', async () => {
  expect((await openParts({}, services)).steps).toEqual({});
});

test('settings bring their steps', async () => {
  const { steps } = await openParts({ tools: { filter: ['a'] } }, services);
  expect(Object.keys(steps)).toEqual(['tool-filter', 'tool-call-filter']);
});

test('a step that cannot be built names its setting, what is wrong and what to do', async () => {
  const opening = openParts({ tools: refused }, services);
  await expect(opening).rejects.toThrow(SkepError);
  await expect(opening).rejects.toMatchObject({
    code: 'proxy/step-unbuildable',
    message: '--tools or --tools-override: the name of a tool is empty',
    hint: 'correct --tools or the file of --tools-override',
  });
});

const lists: Script = (message, { reply }) => {
  if (message.method !== 'tools/list') return undefined;
  reply(message, { tools: [{ name: 'a' }, { name: 'b' }], nextCursor: 'c' });
  return 'handled';
};
const LIST = { jsonrpc: '2.0', id: 7, method: 'tools/list' };

test('a proxy has the steps of its parts, whatever is behind it', async () => {
  await using http = await scriptedHttpServer('http', lists);
  for (const server of [scriptedServer(lists), http]) {
    await using proxy = await runningProxy(server, { parts: { tools: { filter: ['b'] } } });
    const { text } = await postJson(proxy.url, LIST, await newSession(proxy.url));
    expect(text).toContain('"result":{"tools":[{"name":"b"}],"nextCursor":"c"}');
  }
});

test('a proxy whose step cannot be built does not come up, and asks nothing of its server', async () => {
  const server = scriptedServer();
  await expect(runningProxy(server, { parts: { tools: refused } })).rejects.toMatchObject({
    code: 'proxy/step-unbuildable',
  });
  expect(server.attaches).toBe(0);
});

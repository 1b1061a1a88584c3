import { setTimeout as delay } from 'node:timers/promises';
import { postJson } from '../packages/proxy/src/doubles/http-client.ts';
import { newSession, runningProxy, type RunningProxy } from '../packages/proxy/src/doubles/running-proxy.ts';
import { scriptedServer } from '../packages/proxy/src/doubles/scripted-server.ts';
import { median } from './median.ts';
import type { Bench } from './row.ts';

const TOOLS = 500;
const POLICIES = 20;
const ROUNDS = 101;
const CEILING_MS = 5;
const REST_MS = 50;

const tools = Array.from({ length: TOOLS }, (_, index) => ({
  name: `tool_${index}`,
  description: `Does what number ${index} of the many tools of a large server is there for.`,
  annotations: { readOnlyHint: index % 2 === 0 },
  inputSchema: { type: 'object', properties: { path: { type: 'string' }, count: { type: 'number' } } },
}));
const policies = Array.from(
  { length: POLICIES },
  (_, index) =>
    `permit(principal, action, resource) when { resource.readOnlyHint && resource.name like "*${index}" && principal.claim_sub == "me" };`,
);

/** What policies and a filter add to a list of 500 tools for a client that has asked before, and the first time. */
export const authorizationBench: Bench = async (report) => {
  const server = () =>
    scriptedServer((message, { reply }) => {
      if (message.method !== 'tools/list') return undefined;
      reply(message, { tools });
      return 'handled';
    });
  const document = { version: '1.0', type: 'cedarv1', cedar: { policies } };
  const parts = { tools: { filter: tools.map(({ name }) => name) }, authz: { document } };
  await using bare = await runningProxy(server());
  await using judged = await runningProxy(server(), { parts, osUser: 'me' });
  const askBare = await listing(bare);
  const askJudged = await listing(judged);
  // Before a server has started and told its tools nobody has a list of them.
  await atRest();
  const first = await askJudged();
  await askBare();
  const added: number[] = [];
  for (let round = 0; round < ROUNDS; round += 1) added.push(-(await askBare()) + (await askJudged()));
  report({
    name: `authorization: added to a list of ${TOOLS} tools, ${POLICIES} policies and a filter`,
    value: median(added),
    unit: 'ms',
    ceiling: CEILING_MS,
  });
  report({
    name: `authorization: the first list of ${TOOLS} tools that somebody asks for`,
    value: first,
    unit: 'ms',
    ceiling: 250,
  });
};

/** Asks for the list in a session of its own; gives back milliseconds. */
async function listing(proxy: RunningProxy): Promise<() => Promise<number>> {
  const session = await newSession(proxy.url);
  return async () => {
    const began = performance.now();
    await postJson(proxy.url, { jsonrpc: '2.0', id: 1, method: 'tools/list' }, session);
    return performance.now() - began;
  };
}

/** Resolves when this process has nothing left to do. */
async function atRest(): Promise<void> {
  for (let before = performance.eventLoopUtilization(); ; before = performance.eventLoopUtilization()) {
    await delay(REST_MS);
    if (performance.eventLoopUtilization(before).utilization < 0.05) return;
  }
}

import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import type { Screen } from './screen.ts';

/** Connects the official client, lists the tools and calls two of them; prints what came back and how long it took. */
export async function callTools(url: string, screen: Screen): Promise<void> {
  const client = new Client({ name: 'skep-demo', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(url)));
  try {
    const server = client.getServerVersion();
    screen.done(`connected to ${server?.name ?? 'the server'} ${server?.version ?? ''}`);
    const { tools } = await client.listTools();
    screen.done(`${tools.length} tools`);
    screen.block(columns(tools.map((tool) => tool.name)));
    await call(client, screen, {
      name: 'echo',
      arguments: { message: 'hello from the other side of a skep' },
    });
    await call(client, screen, { name: 'get-sum', arguments: { a: 19, b: 23 } });
  } finally {
    await client.close();
  }
}

type Call = { readonly name: string; readonly arguments: Record<string, unknown> };

async function call(client: Client, screen: Screen, request: Call): Promise<void> {
  const started = performance.now();
  const result = await client.callTool(request);
  const took = (performance.now() - started).toFixed(1);
  const text = result.content.flatMap((part) => (part.type === 'text' ? [part.text] : [])).join(' ');
  if (result.isError === true || text === '')
    throw new Error(`${request.name} answered with an error: ${text}`);
  screen.done(`${request.name}(${JSON.stringify(request.arguments)}) in ${took} ms`);
  screen.block([text]);
}

function columns(names: readonly string[]): readonly string[] {
  const lines: string[] = [];
  for (const name of names) {
    const last = lines.at(-1);
    if (last !== undefined && last.length + name.length < 70) lines[lines.length - 1] = `${last}  ${name}`;
    else lines.push(name);
  }
  return lines;
}

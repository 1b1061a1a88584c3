import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { printable, printableLines } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import { tokenSettings } from '../cli/client-token.ts';
import { withServer, type AskedServer } from './asked-server.ts';
import { toTable } from '../print/table.ts';
import { toJsonText } from '../workloads/to-json.ts';

type Item = Readonly<Record<string, unknown>>;

const KINDS = ['tools', 'resources', 'prompts'] as const;
const SHOWN_NAMES = 20;

export const mcpList = defineCommand({
  usage: 'skep mcp list [flags] tools|resources|prompts SERVER|URL',
  summary: 'List what a running server offers its clients',
  description: [
    'The server is asked through its proxy, as any client: with the names, and what is hidden, that its run decided.',
  ],
  examples: [
    { command: 'skep mcp list tools time', what: 'Its tools' },
    { command: 'skep mcp list tools time --format json', what: 'All that it says of them' },
    { command: 'skep mcp list resources http://127.0.0.1:4001/mcp', what: 'Of whatever answers there' },
  ],
  positionals: [
    { name: 'tools|resources|prompts', required: true },
    { name: 'SERVER|URL', required: true },
  ],
  settings: [...tokenSettings, ...formatSettings, ...commonSettings],
  async run({ values, positionals: [kind = '', target = ''] }, context) {
    const what = KINDS.find((one) => one === kind);
    if (what === undefined)
      throw new SkepError('usage/invalid-value', {
        message: `"${printable(kind)}" is none of ${KINDS.join(', ')}`,
        hint: `skep mcp list tools ${target}`,
      });
    const { terminal } = context;
    const { tokenFile } = values;
    const items = await withServer({ target, tokenFile }, context, (server) => server.list(what));
    if (values.format === 'json') return terminal.out(toJsonText(items));
    const first = what === 'resources' ? 'uri' : 'name';
    const rows = items.map((item) => [
      textOf(item[first]),
      textOf(item['description'] ?? item['title'] ?? (first === 'uri' ? item['name'] : '')),
    ]);
    terminal.out(toTable([{ title: first.toUpperCase(), whole: true }, 'DESCRIPTION'], rows, terminal));
  },
});

export const mcpCall = defineCommand({
  usage: 'skep mcp call [flags] SERVER|URL TOOL [NAME=VALUE … | JSON]',
  summary: 'Call a tool of a running server, and print what it answers',
  description: [
    'Values are texts where the tool takes texts, and JSON otherwise; one JSON object is all arguments at once. The exit status is 1 where the tool says that it failed.',
  ],
  examples: [
    { command: 'skep mcp call time get_current_time timezone=Europe/Berlin', what: 'Arguments by name' },
    { command: `skep mcp call files search '{"path":"/data","pattern":"*.md"}'`, what: 'As JSON' },
  ],
  positionals: [
    { name: 'SERVER|URL', required: true },
    { name: 'TOOL', required: true },
    { name: 'ARGUMENT', variadic: true },
  ],
  settings: [...tokenSettings, ...formatSettings, ...commonSettings],
  async run({ values, positionals: [target = '', name = '', ...given] }, context) {
    const { terminal } = context;
    const { tokenFile } = values;
    const result = await withServer({ target, tokenFile }, context, async (server) => {
      const tool = await findTool(server, name, target);
      return server.ask('tools/call', { name, arguments: argumentsOf(given, tool) });
    });
    const failed = result['isError'] === true;
    if (values.format === 'json') terminal.out(toJsonText(result));
    else if (!failed) terminal.out(printableLines(`${contentText(result)}\n`));
    if (!failed) return;
    throw new SkepError('mcp/tool-failed', {
      message: `the tool "${printable(name)}" failed: ${printable(contentText(result)) || 'it does not say why'}`,
    });
  },
});

/** Fails with `mcp/no-tool`, naming those that there are. */
async function findTool(server: AskedServer, name: string, target: string): Promise<Item> {
  const tools = await server.list('tools');
  const found = tools.find((tool) => tool['name'] === name);
  if (found !== undefined) return found;
  const names = tools.map((tool) => textOf(tool['name']));
  const more = names.length > SHOWN_NAMES ? `, … (skep mcp list tools ${target})` : '';
  const listed = names.slice(0, SHOWN_NAMES).map(printable).join(', ');
  throw new SkepError('mcp/no-tool', {
    message: `"${target}" has no tool "${printable(name)}"`,
    hint: suggestion(name, names, names.length === 0 ? 'it has no tools' : `it has ${listed}${more}`),
  });
}

/** What was given as the tool takes it. Fails with `usage/invalid-value`, and with `usage/missing-argument`. */
function argumentsOf(given: readonly string[], { inputSchema: schema }: Item): Item {
  const [only = ''] = given;
  const whole = given.length === 1 && only.trimStart().startsWith('{') ? parsedJson(only) : undefined;
  const { properties, required } = isRecord(schema) ? schema : {};
  const read = isRecord(whole)
    ? whole
    : Object.fromEntries(given.map((text) => argumentOf(text, isRecord(properties) ? properties : {})));
  const names = Array.isArray(required) ? required.filter((one) => typeof one === 'string') : [];
  const missing = names.filter((one) => !Object.hasOwn(read, one)).map(printable);
  if (missing.length === 0) return read;
  throw new SkepError('usage/missing-argument', {
    message: `the tool needs ${missing.join(', ')}`,
    hint: `add ${missing.map((one) => `${one}=…`).join(' ')}`,
  });
}

function argumentOf(text: string, properties: Item): readonly [string, unknown] {
  const at = text.indexOf('=');
  if (at < 1)
    throw new SkepError('usage/invalid-value', {
      message: `"${printable(text)}" is neither NAME=VALUE nor a JSON object`,
      hint: 'give arguments as name=value, or all of them as one JSON object',
    });
  const [name, value] = [text.slice(0, at), text.slice(at + 1)];
  const property = Object.hasOwn(properties, name) ? properties[name] : undefined;
  const type = isRecord(property) ? property['type'] : undefined;
  return [name, type === 'string' ? value : (parsedJson(value) ?? value)];
}

/** The texts of an answer; what is no text is named. */
function contentText({ content, structuredContent }: Item): string {
  const parts = Array.isArray(content) ? content.filter(isRecord) : [];
  if (parts.length === 0)
    return structuredContent === undefined ? '' : JSON.stringify(structuredContent, null, 2);
  return parts.map(partText).join('\n');
}

function partText({ type, text, mimeType, uri, resource }: Item): string {
  if (typeof text === 'string') return text;
  const inner = isRecord(resource) ? resource : {};
  if (typeof inner['text'] === 'string') return inner['text'];
  const facts = [mimeType, inner['mimeType'], uri, inner['uri']].filter((one) => typeof one === 'string');
  return `[${[textOf(type), ...facts].join(' ')}]`;
}

function textOf(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

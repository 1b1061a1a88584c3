import { posix, win32 } from 'node:path';

/** How a client's configuration file is written. */
export type FileFormat = 'jsonc' | 'yaml' | 'toml';

/** The words with which a client names how a server is reached. */
interface Words {
  readonly http?: string;
  readonly sse?: string;
  readonly stdio?: string;
}

/** One MCP client: where its configuration lies, and how a server is written into it. */
export interface Client {
  readonly name: string;
  /** As its makers call it. */
  readonly title: string;
  /** Relative to the home directory; `@/` is the platform's folder for configuration. */
  readonly file: string;
  /** Its file on Windows, where that is another one. */
  readonly windows?: string;
  /** What is there once the client is installed; the folder of its file by default. */
  readonly sign?: string;
  readonly format: FileFormat;
  /** Member of the document that holds the servers; dots in it mean nothing. */
  readonly key: string;
  /** The servers are a list, each with a member `name`. */
  readonly isList?: true;
  /** Member that holds the URL. */
  readonly url: string;
  /** The same for servers that speak SSE, where it is another one. */
  readonly sseUrl?: string;
  /** Member that holds one of `words`; `type` by default. */
  readonly wordMember?: string;
  readonly words?: Words;
  /** How a command is written: `command` and `args` by default, `cmd` and `args`, or one list. */
  readonly command?: 'cmd' | 'list';
  /** What every entry holds beside it. */
  readonly also?: Readonly<Record<string, unknown>>;
  /** Its policies compare names with those of a registry, so entries are named as there. */
  readonly namesAsRegistry?: true;
}

const USUAL: Words = { http: 'http', sse: 'sse', stdio: 'stdio' };

/** A client whose file is JSON (with comments) with `mcpServers`, `url` and no further words. */
function client(name: string, title: string, file: string, facts: Partial<Client> = {}): Client {
  return { name, title, file, format: 'jsonc', key: 'mcpServers', url: 'url', ...facts };
}

const VSCODE: Partial<Client> = { key: 'servers', namesAsRegistry: true };
const storage = (extension: string): string => `@/Code/User/globalStorage/${extension}`;

/** Every client that `skep connect` knows, by name. Help, completion, `list --format` and the reference derive from it. */
export const CLIENTS: readonly Client[] = [
  client('amp-cli', 'Amp', '.config/amp/settings.json', {
    windows: 'AppData/Roaming/amp/settings.json',
    key: 'amp.mcpServers',
    words: USUAL,
  }),
  client('antigravity', 'Antigravity', '.gemini/antigravity/mcp_config.json', { url: 'serverUrl' }),
  client('claude-code', 'Claude Code', '.claude.json', { sign: '.claude', words: USUAL }),
  client('cline', 'Cline', `${storage('saoudrizwan.claude-dev')}/settings/cline_mcp_settings.json`, {
    sign: storage('saoudrizwan.claude-dev'),
    words: { ...USUAL, http: 'streamableHttp' },
  }),
  client('codex', 'Codex', '.codex/config.toml', { format: 'toml', key: 'mcp_servers' }),
  client('continue', 'Continue', '.continue/config.yaml', {
    format: 'yaml',
    isList: true,
    words: { ...USUAL, http: 'streamable-http' },
  }),
  client('copilot-cli', 'GitHub Copilot CLI', '.copilot/mcp-config.json', {
    words: USUAL,
    also: { tools: ['*'] },
  }),
  client('cursor', 'Cursor', '.cursor/mcp.json', { words: USUAL }),
  client('factory', 'Factory', '.factory/mcp.json', { words: USUAL }),
  client('gemini-cli', 'Gemini CLI', '.gemini/settings.json', { url: 'httpUrl', sseUrl: 'url' }),
  client('goose', 'Goose', '.config/goose/config.yaml', {
    windows: 'AppData/Block/goose/config.yaml',
    format: 'yaml',
    key: 'extensions',
    url: 'uri',
    words: { ...USUAL, http: 'streamable_http' },
    command: 'cmd',
    also: { enabled: true, timeout: 60, description: '' },
  }),
  client('kimi-cli', 'Kimi CLI', '.kimi/mcp.json'),
  client('kiro', 'Kiro', '.kiro/settings/mcp.json', { sign: '.kiro' }),
  client('lm-studio', 'LM Studio', '.lmstudio/mcp.json', { words: USUAL }),
  client('mistral-vibe', 'Mistral Vibe', '.vibe/config.toml', {
    format: 'toml',
    key: 'mcp_servers',
    isList: true,
    wordMember: 'transport',
    words: { http: 'streamable-http', sse: 'http', stdio: 'stdio' },
  }),
  client('opencode', 'OpenCode', '.config/opencode/opencode.json', {
    key: 'mcp',
    words: { http: 'remote', sse: 'remote', stdio: 'local' },
    command: 'list',
    also: { enabled: true },
  }),
  client('qoder', 'Qoder', '.qoder/mcp.json', {
    windows: 'AppData/Roaming/Qoder/SharedClientCache/mcp.json',
    words: USUAL,
  }),
  client(
    'roo-code',
    'Roo Code (deprecated)',
    `${storage('rooveterinaryinc.roo-cline')}/settings/mcp_settings.json`,
    { sign: storage('rooveterinaryinc.roo-cline'), words: { ...USUAL, http: 'streamable-http' } },
  ),
  client('trae', 'Trae', '@/Trae/User/mcp.json'),
  client('vscode', 'VS Code', '@/Code/User/mcp.json', { ...VSCODE, words: USUAL }),
  client('vscode-insider', 'VS Code Insiders', '@/Code - Insiders/User/mcp.json', {
    ...VSCODE,
    words: USUAL,
  }),
  client('vscode-server', 'VS Code Server', '.vscode-server/data/User/mcp.json', VSCODE),
  client('windsurf', 'Windsurf', '.codeium/windsurf/mcp_config.json', { url: 'serverUrl', words: USUAL }),
  client('windsurf-jetbrains', 'Windsurf for JetBrains', '.codeium/mcp_config.json', {
    url: 'serverUrl',
    words: USUAL,
  }),
  client('zed', 'Zed', '.config/zed/settings.json', {
    windows: 'AppData/Roaming/zed/settings.json',
    key: 'context_servers',
  }),
];

export const CLIENT_NAMES: readonly string[] = CLIENTS.map(({ name }) => name);

/** Where the person's files are. */
export interface Desk {
  readonly home: string;
  readonly platform: NodeJS.Platform;
}

const PLATFORM_FOLDERS: Readonly<Record<string, string>> = {
  darwin: 'Library/Application Support',
  win32: 'AppData/Roaming',
};

/** The configuration file of a client, absolute. */
export function fileOf({ file, windows }: Client, desk: Desk): string {
  return below(desk, desk.platform === 'win32' ? (windows ?? file) : file);
}

/** What is there once the client is installed, absolute. */
export function signOf(one: Client, desk: Desk): string {
  const path = desk.platform === 'win32' ? win32 : posix;
  return one.sign === undefined ? path.dirname(fileOf(one, desk)) : below(desk, one.sign);
}

function below({ home, platform }: Desk, relative: string): string {
  const path = platform === 'win32' ? win32 : posix;
  return path.join(home, relative.replace(/^@/, PLATFORM_FOLDERS[platform] ?? '.config'));
}

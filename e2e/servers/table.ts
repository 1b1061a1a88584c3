import type { Bodies } from '../fixtures/small-internet.ts';

/** A server that somebody published, with what it takes to have it do something here, without its service. */
export interface PublicServer {
  /** Its name as a workload. */
  readonly name: string;
  /** The package, with its version. */
  readonly target: string;
  readonly args?: readonly string[];
  /** Variables; keys are none. */
  readonly env?: Readonly<Record<string, string>>;
  /** What of the little that lies ready it is shown: `files`, `repository` or `postgres`, at this path, read-only or not. */
  readonly mounts?: Readonly<Record<string, string>>;
  /** What stands for its service answers; every path the same. */
  readonly bodies?: Bodies;
  /** A tool that is called, and what its answer has in it. Without one this machine can serve none. */
  readonly call?: { readonly name: string; readonly arguments: object; readonly answers: RegExp };
  /** Of its mounts those that the least profile leaves out, and those that it opens for writing; it reads the others. */
  readonly unused?: readonly string[];
  readonly writes?: readonly string[];
  /** Hosts that it looks for as well and does without. */
  readonly alsoAsks?: readonly string[];
  /** It needs a program that the base images of tests do not have, and those that are pulled do. */
  readonly needsInImage?: string;
  /** Asked each time, because it is small: in the sandbox, or on an engine too. */
  readonly quick?: 'sandbox' | 'both';
}

const TODAY = '2026.8.31';
const REFERENCE = '@modelcontextprotocol/server-';

export const PUBLIC_SERVERS: readonly PublicServer[] = [
  {
    name: 'everything',
    target: `npx://${REFERENCE}everything@${TODAY}`,
    call: { name: 'echo', arguments: { message: 'bees' }, answers: /Echo: bees/ },
  },
  {
    name: 'filesystem',
    quick: 'sandbox',
    target: `npx://${REFERENCE}filesystem@${TODAY}`,
    args: ['/files'],
    mounts: { files: '/files', repository: '/repository' },
    unused: ['/repository'],
    call: { name: 'read_text_file', arguments: { path: '/files/notes.txt' }, answers: /buy milk/ },
  },
  {
    name: 'memory',
    target: `npx://${REFERENCE}memory@${TODAY}`,
    call: {
      name: 'create_entities',
      arguments: { entities: [{ name: 'Ada', entityType: 'person', observations: ['keeps bees'] }] },
      answers: /keeps bees/,
    },
  },
  {
    name: 'sequential-thinking',
    target: `npx://${REFERENCE}sequential-thinking@${TODAY}`,
    call: {
      name: 'sequentialthinking',
      arguments: { thought: 'bees', nextThoughtNeeded: false, thoughtNumber: 1, totalThoughts: 1 },
      answers: /"thoughtHistoryLength": ?1/,
    },
  },
  {
    name: 'github',
    quick: 'both',
    target: `npx://${REFERENCE}github@2025.4.8`,
    env: { GITHUB_PERSONAL_ACCESS_TOKEN: 'none' },
    bodies: { 'api.github.com': { total_count: 0, incomplete_results: false, items: [] } },
    call: { name: 'search_repositories', arguments: { query: 'bees' }, answers: /"total_count": 0/ },
  },
  {
    name: 'postgres',
    target: `npx://${REFERENCE}postgres@0.6.2`,
    args: ['postgresql:///postgres?host=/postgres&user=postgres'],
    mounts: { postgres: '/postgres' },
    call: { name: 'query', arguments: { sql: "select 'b' || 'ees' as x" }, answers: /bees/ },
  },
  {
    name: 'context7',
    target: 'npx://@upstash/context7-mcp@4.1.1',
    bodies: { 'context7.com': { results: [{ id: '/bees/hive', title: 'Hive', description: 'bees' }] } },
    call: {
      name: 'resolve-library-id',
      arguments: { query: 'how do bees fly', libraryName: 'hive' },
      answers: /\/bees\/hive/,
    },
  },
  {
    name: 'notion',
    target: 'npx://@notionhq/notion-mcp-server@2.5.2',
    env: { NOTION_TOKEN: 'none' },
    bodies: { 'api.notion.com': { object: 'user', id: 'bees' } },
    call: { name: 'API-get-self', arguments: {}, answers: /bees/ },
  },
  {
    name: 'firecrawl',
    target: 'npx://firecrawl-mcp@3.26.0',
    env: { FIRECRAWL_API_KEY: 'fc-none' },
    bodies: { 'api.firecrawl.dev': { success: true, data: { markdown: 'bees' } } },
    call: { name: 'firecrawl_scrape', arguments: { url: 'https://example.com/' }, answers: /bees/ },
  },
  {
    name: 'tavily',
    target: 'npx://tavily-mcp@0.2.22',
    env: { TAVILY_API_KEY: 'tvly-none' },
    bodies: {
      'api.tavily.com': { query: 'x', results: [{ title: 'x', url: 'x', content: 'bees', score: 1 }] },
    },
    call: { name: 'tavily_search', arguments: { query: 'honey' }, answers: /bees/ },
  },
  {
    name: 'exa',
    target: 'npx://exa-mcp-server@3.4.1',
    env: { EXA_API_KEY: 'none' },
    bodies: { 'api.exa.ai': { requestId: 'x', results: [{ id: 'x', title: 'x', url: 'x', text: 'bees' }] } },
    call: { name: 'web_search_exa', arguments: { query: 'honey' }, answers: /bees/ },
  },
  {
    name: 'sentry',
    target: 'npx://@sentry/mcp-server@0.39.0',
    env: { SENTRY_ACCESS_TOKEN: 'none' },
    bodies: { 'sentry.io': [{ id: '1', slug: 'bees', name: 'Bees', links: { organizationUrl: 'https://sentry.io', regionUrl: '' } }] }, // prettier-ignore
    call: { name: 'find_organizations', arguments: {}, answers: /bees/ },
  },
  {
    name: 'brave-search',
    target: 'npx://@brave/brave-search-mcp-server@2.1.4',
    env: { BRAVE_API_KEY: 'none' },
    bodies: { 'api.search.brave.com': { web: { results: [{ url: 'x', title: 'bees', description: 'x' }] } } },
    call: { name: 'brave_web_search', arguments: { query: 'honey' }, answers: /bees/ },
  },
  { name: 'playwright', target: 'npx://@playwright/mcp@0.0.83' },
  { name: 'chrome-devtools', target: 'npx://chrome-devtools-mcp@1.11.0', alsoAsks: ['play.googleapis.com'] },
  {
    name: 'fetch',
    quick: 'sandbox',
    target: 'uvx://mcp-server-fetch@2026.10.24',
    bodies: { 'pages.example': { says: 'bees' } },
    call: { name: 'fetch', arguments: { url: 'https://pages.example/' }, answers: /bees/ },
  },
  {
    name: 'git',
    target: 'uvx://mcp-server-git@2026.10.19',
    needsInImage: 'git',
    mounts: { repository: '/repository' },
    call: { name: 'git_log', arguments: { repo_path: '/repository' }, answers: /about bees/ },
  },
  {
    name: 'time',
    target: 'uvx://mcp-server-time@2026.10.19',
    call: { name: 'get_current_time', arguments: { timezone: 'Europe/Berlin' }, answers: /Europe\/Berlin/ },
  },
  {
    name: 'duckduckgo',
    target: 'uvx://duckduckgo-mcp-server@0.7.0',
    bodies: { 'pages.example': { says: 'bees' } },
    call: { name: 'fetch_content', arguments: { url: 'https://pages.example/' }, answers: /bees/ },
  },
  {
    name: 'aws-documentation',
    target: 'uvx://awslabs.aws-documentation-mcp-server@1.2.3',
    bodies: { 'docs.aws.amazon.com': { says: 'bees' } },
    call: {
      name: 'read_documentation',
      arguments: { url: 'https://docs.aws.amazon.com/bees.html' },
      answers: /bees/,
    },
  },
  {
    name: 'mcp-go',
    target: 'go://github.com/mark3labs/mcp-go/examples/everything@v1.2.1',
    call: { name: 'echo', arguments: { message: 'bees' }, answers: /Echo: bees/ },
  },
  {
    name: 'grafana',
    target: 'go://github.com/grafana/mcp-grafana/cmd/mcp-grafana@v1.6.3',
    env: { GRAFANA_URL: 'https://grafana.example', GRAFANA_SERVICE_ACCOUNT_TOKEN: 'none' },
    bodies: { 'grafana.example': [{ uid: 'bees', title: 'Bees', type: 'dash-db' }] },
    call: { name: 'search_dashboards', arguments: { query: 'bees' }, answers: /Bees/ },
  },
];

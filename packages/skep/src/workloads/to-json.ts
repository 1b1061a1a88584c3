import { redactUrl } from '@skep/core/log/redact.ts';
import { printableJson } from '@skep/core/terminal/printable.ts';
import type { CardRow } from '../permissions/card.ts';
import type { FoundServer } from '../supervisor/found-server.ts';
import { shownUrl, type WorkloadView } from './view.ts';

/** One element of `list --format json`; `calls` is what was counted of its tools, null where nobody knows. The keys and their order are a promise to scripts; an unknown time is null. */
export function toListItem(view: WorkloadView, calls: readonly object[] | null): Record<string, unknown> {
  return {
    name: view.name,
    package: view.package,
    url: view.url,
    port: view.port,
    transport_type: view.transport,
    ...(view.proxyMode === undefined ? {} : { proxy_mode: view.proxyMode }),
    status: view.status,
    ...(view.context === undefined ? {} : { status_context: view.context }),
    created_at: view.createdAt?.toISOString() ?? null,
    started_at: view.startedAt?.toISOString() ?? null,
    ...(Object.keys(view.labels).length === 0 ? {} : { labels: view.labels }),
    group: view.group,
    ...(view.tools?.length ? { tools: view.tools } : {}),
    ...(view.remoteUrl === undefined ? {} : { remote: true }),
    front_url: view.frontUrl ?? null,
    tool_calls: calls,
  };
}

export interface MoreOfStatus {
  /** Not there for a workload whose configuration cannot be read. */
  readonly card: readonly CardRow[] | undefined;
  /** Not there for one that was never asked. */
  readonly found: FoundServer | undefined;
  /** What its gateway refused; null where that is not known. */
  readonly refused: readonly object[] | null;
  /** What was counted of its tools; null where nobody knows. */
  readonly calls: readonly object[] | null;
  /** What it seems to lack by its own words, with the command line that gives it. */
  readonly lacks: readonly { readonly what: string; readonly permit: string }[];
}

/** `status --format json`; what nobody knows of the server is null. */
export function toStatusItem(
  view: WorkloadView,
  now: Date,
  { card, found, refused, calls, lacks }: MoreOfStatus,
): Record<string, unknown> {
  const uptime = uptimeOf(view, now);
  const permissions = card && Object.fromEntries(card.map(({ key, values }) => [key, values]));
  return {
    name: view.name,
    status: view.status,
    ...(view.context === undefined ? {} : { health: view.context }),
    package: view.package,
    url: view.url,
    port: view.port,
    transport: view.transport,
    ...(view.proxyMode === undefined ? {} : { proxy_mode: view.proxyMode }),
    ...(permissions?.['not_enforced'] === undefined ? {} : { not_enforced: permissions['not_enforced'] }),
    ...(permissions === undefined ? {} : { permissions }),
    refused,
    may_lack: lacks.map(({ what, permit }) => ({ what, permit })),
    ...(view.remoteUrl === undefined ? {} : { remote_url: redactUrl(view.remoteUrl) }),
    server: found ? toServerItem(found) : null,
    group: view.group,
    front_url: view.frontUrl ?? null,
    tool_calls: calls,
    ...(uptime === undefined ? {} : { uptime }),
  };
}

function toServerItem({ server, protocol_version, tools, complete, at }: FoundServer): object {
  return {
    name: server?.name ?? null,
    version: server?.version ?? null,
    protocol_version: protocol_version ?? null,
    tools: tools?.map(({ name, digest, tokens }) => ({ name, digest, tokens })) ?? null,
    all_tools: complete,
    asked_at: at,
  };
}

/** What MCP clients read: `{"mcpServers":{NAME:{url,type}}}`. */
export function toMcpServers(views: readonly WorkloadView[]): Record<string, unknown> {
  const servers = views.map((view) => [
    view.name,
    { url: shownUrl(view), type: view.proxyMode ?? view.transport },
  ]);
  return { mcpServers: Object.fromEntries(servers) };
}

/** `1d 2h 3m`, without leading zero parts; only while running. */
export function uptimeOf(view: WorkloadView, now: Date): string | undefined {
  if (view.status !== 'running' || view.startedAt === undefined) return undefined;
  const minutes = Math.max(0, Math.floor((now.getTime() - view.startedAt.getTime()) / 60_000));
  const days = Math.floor(minutes / 1440);
  const hours = Math.floor(minutes / 60) % 24;
  const parts = [days > 0 ? `${days}d` : '', hours > 0 || days > 0 ? `${hours}h` : ''];
  return [...parts, `${minutes % 60}m`].filter((part) => part !== '').join(' ');
}

/** JSON for scripts, which a terminal can show as it is. */
export function toJsonText(value: unknown): string {
  return `${printableJson(JSON.stringify(value, null, 2))}\n`;
}

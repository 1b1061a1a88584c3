import { didYouMean } from '@skep/core/settings/did-you-mean.ts';
import {
  bool,
  exactly,
  listOf,
  nullish,
  text,
  wholeNumber,
  type Shape,
  type ShapeType,
} from '@skep/core/settings/shape.ts';

/** Every type of event, as ToolHive's consumers know them. */
export const AUDIT_EVENTS = [
  'mcp_initialize',
  'mcp_tool_call',
  'mcp_tools_list',
  'mcp_resource_read',
  'mcp_resources_list',
  'mcp_prompt_get',
  'mcp_prompts_list',
  'mcp_ping',
  'mcp_logging',
  'mcp_completion',
  'mcp_notification',
  'mcp_roots_list_changed',
  'mcp_request',
  'sse_connection',
  'http_request',
] as const;
export type AuditType = (typeof AUDIT_EVENTS)[number];

const eventType: Shape<string> = (value, fail) => {
  const type = text(value, fail);
  if (AUDIT_EVENTS.some((one) => one === type)) return type;
  const near = didYouMean(type, AUDIT_EVENTS);
  return fail(`unknown event type "${type}"${near === undefined ? '' : `; did you mean "${near}"?`}`);
};

/** As much of an answer as is looked at where bytes are relayed (backend/http/answer-reader.ts). */
const MAX_DATA_BYTES = 64 * 1024;

/** What an audit configuration may say; each member may be absent or null. */
export const auditShape = exactly({
  /** That there is a configuration already says it. */
  enabled: nullish(bool),
  component: nullish(text),
  eventTypes: nullish(listOf(eventType)),
  excludeEventTypes: nullish(listOf(eventType)),
  includeRequestData: nullish(bool),
  includeResponseData: nullish(bool),
  detectApplicationErrors: nullish(bool),
  maxDataSize: nullish(wholeNumber(0, MAX_DATA_BYTES)),
  maxDelegationDepth: nullish(wholeNumber(1, 100)),
  logFile: nullish(text),
});
export type AuditConfig = ShapeType<typeof auditShape>;

/** An audit configuration with its defaults (docs/behaviour/proxy.md#audit-events). */
export interface AuditSettings {
  readonly component: string | undefined;
  /** Empty: all. */
  readonly eventTypes: readonly string[];
  readonly excludeEventTypes: readonly string[];
  readonly withRequests: boolean;
  readonly withResponses: boolean;
  readonly detectsErrors: boolean;
  /** Bytes of a message that are kept. */
  readonly maxDataBytes: number;
  readonly maxDelegationDepth: number;
  /** Absolute. */
  readonly path: string;
}

const USUAL_DATA_BYTES = 1024;
const USUAL_DEPTH = 10;

/** `usualPath`: where events go that are to go nowhere else. */
export function auditSettings(config: AuditConfig, usualPath: string): AuditSettings {
  return {
    component: config.component || undefined,
    eventTypes: config.eventTypes ?? [],
    excludeEventTypes: config.excludeEventTypes ?? [],
    withRequests: config.includeRequestData ?? false,
    withResponses: config.includeResponseData ?? false,
    detectsErrors: config.detectApplicationErrors ?? true,
    // 0 asks for the usual size, as in the files that exist.
    maxDataBytes: config.maxDataSize || USUAL_DATA_BYTES,
    maxDelegationDepth: config.maxDelegationDepth ?? USUAL_DEPTH,
    path: config.logFile || usualPath,
  };
}

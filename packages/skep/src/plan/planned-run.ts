import type { Settings } from '@skep/core/settings/field.ts';
import type { AuditMembers } from '../run-config/audit.ts';
import type { AppConfig } from '../config/app-config.ts';
import type { PermissionProfile } from '../permissions/profile.ts';
import type { RunValues } from '../settings/run-settings.ts';
import type { CheckedInputs } from './check-inputs.ts';
import type { AuthzConfig } from '../run-config/authz.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { ToolConfig } from '../run-config/tools.ts';
import type { WebhookConfig } from '../run-config/webhooks.ts';
import type { PlannedTelemetry } from './plan-telemetry.ts';
import type { PlannedExchange } from './plan-exchange.ts';
import type { PlannedSignIn } from './plan-sign-in.ts';
import type { Resolved } from './resolve-target.ts';

export interface RunRequest {
  readonly target: string;
  readonly values: RunValues;
  /** Flags and variables, with which of them each value came from. */
  readonly settings: Settings;
  /** What stood after `--`. */
  readonly args: readonly string[] | undefined;
}

/** Whether a workload is isolated, and how that is put right where it cannot be. */
export interface Isolation {
  readonly on: boolean;
  readonly hint: string;
}

/** What was asked for, checked and looked up. */
export interface AskedRun {
  readonly request: RunRequest;
  readonly config: AppConfig;
  readonly inputs: CheckedInputs;
  readonly resolved: Resolved;
  readonly isolation: Isolation;
}

/** What that means here. */
export interface PlannedRun extends Pick<AskedRun, 'inputs' | 'resolved'> {
  readonly name: string;
  /** Of all that decided it, the catalogue among it. */
  readonly values: RunValues;
  readonly profile: PermissionProfile;
  readonly signIn: PlannedSignIn;
  readonly exchange: PlannedExchange;
  /** As it is saved; its members are undefined where clients see all tools as they are. */
  readonly tools: ToolConfig;
  /** As it is saved; its members are undefined where everybody may use everything. */
  readonly authz: AuthzConfig;
  /** As it is saved; its members are undefined where nobody is asked. */
  readonly webhooks: WebhookConfig;
  /** As it is saved. */
  readonly audit: AuditMembers;
  /** As it is saved. */
  readonly scaling: Pick<RunConfig, 'scaling_config' | 'skep_ca_bundle'>;
  readonly telemetry: PlannedTelemetry;
  readonly args: readonly string[];
}

/** What of it is decided of the proxy and its clients, wherever the server runs. */
export type PlannedProxy = Pick<
  PlannedRun,
  | 'inputs'
  | 'values'
  | 'signIn'
  | 'exchange'
  | 'tools'
  | 'authz'
  | 'webhooks'
  | 'audit'
  | 'scaling'
  | 'telemetry'
>;

import type { Settings } from '@skep/core/settings/field.ts';
import type { AppConfig } from '../config/app-config.ts';
import type { PermissionProfile } from '../permissions/profile.ts';
import type { Runtime } from '../runtime/runtime.ts';
import type { RunValues } from '../settings/run-settings.ts';
import type { CheckedInputs } from './check-inputs.ts';
import type { Resolved, Target } from './resolve-target.ts';

export interface RunRequest {
  readonly target: string;
  readonly values: RunValues;
  /** Flags and variables, with which of them each value came from. */
  readonly settings: Settings;
  /** What stood after `--`. */
  readonly args: readonly string[] | undefined;
}

/** What was asked for, looked at by itself. */
export interface CheckedRun {
  readonly request: RunRequest;
  readonly target: Target;
  readonly config: AppConfig;
  readonly inputs: CheckedInputs;
}

/** What was asked for, and what it means here. */
export interface PlannedRun extends CheckedRun {
  /** What decided it: `request.values` are the values of these now, the catalogue's among them. */
  readonly settings: Settings;
  readonly resolved: Resolved;
  readonly runtime: Runtime;
  readonly profile: PermissionProfile;
  readonly args: readonly string[];
}

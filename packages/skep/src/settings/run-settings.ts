import { defineSettings, type Values } from '@skep/core/settings/define-settings.ts';
import { proxySettings } from '@skep/proxy/settings.ts';
import { buildSettings } from './build.ts';
import { environmentSettings } from './environment.ts';
import { identitySettings } from './identity.ts';
import { limitSettings } from './limits.ts';
import { incomingAuthSettings, outgoingAuthSettings, tokenExchangeSettings } from './authentication.ts';
import { decidedKeys, laterKeys } from './stored-keys.ts';
import { telemetrySettings } from './telemetry.ts';
import { toolSettings } from './tools.ts';
import { transportSettings } from './transport.ts';

/** Every setting of `skep run`. Those with a key are what a run configuration is. */
export const runSettings = defineSettings([
  ...identitySettings,
  ...transportSettings,
  ...proxySettings,
  ...environmentSettings,
  ...limitSettings,
  ...buildSettings,
  ...toolSettings,
  ...telemetrySettings,
  ...incomingAuthSettings,
  ...outgoingAuthSettings,
  ...tokenExchangeSettings,
  ...decidedKeys,
  ...laterKeys,
]);

export type RunValues = Values<typeof runSettings>;

/** The flags that may stand beside `--from-config`. */
export const besideFromConfig: readonly (keyof RunValues)[] = [
  'fromConfig',
  'trustConfig',
  'runtime',
  'explain',
  'foreground',
  'debug',
  'help',
];

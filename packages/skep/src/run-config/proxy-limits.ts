import { valuesOf } from '@skep/core/settings/define-settings.ts';
import type { Settings } from '@skep/core/settings/field.ts';
import { fromStored, toStored } from '@skep/core/settings/stored.ts';
import { proxySettings, type ProxyLimits } from '@skep/proxy/settings.ts';
import type { RunConfig } from './run-config.ts';

type Limits = Partial<Pick<RunConfig, (typeof proxySettings)[number]['key']>>;

/** The limits that a run or a start was given, as they are saved; nothing where nothing was given. */
export function givenLimits(settings: Settings): Limits {
  const given = proxySettings.flatMap((row) => {
    const setting = settings.get(row.name);
    return setting === undefined || setting.origin === 'default'
      ? []
      : [[row.key, toStored(row, setting.value)]];
  });
  return Object.fromEntries(given) as Limits;
}

/** What the proxy of a workload is started with. */
export function proxyLimits(config: Limits): ProxyLimits {
  const saved = proxySettings.flatMap((row) => {
    const value = fromStored(row, config[row.key]);
    return value === undefined ? [] : [[row.name, { value, origin: 'config' }] as const];
  });
  return valuesOf(proxySettings, new Map(saved));
}

import type { NamedRegistry, NamedSource } from './rows.ts';

// Settings as text: equal texts are equal settings.

export function sourceText({ kind, config, format, filter, interval, claims }: NamedSource): string {
  return JSON.stringify([kind, config, format, filter, interval, claims]);
}

export function registryText({ sources, claims }: NamedRegistry): string {
  return JSON.stringify([sources, claims]);
}

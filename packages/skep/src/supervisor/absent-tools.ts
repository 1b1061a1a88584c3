import { suggestion } from '@skep/core/settings/did-you-mean.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { ToolSettings } from '@skep/proxy/steps/tool-view.ts';
import type { FoundServer } from './found-server.ts';

const SHOWN_NAMES = 20;

/**
 * Lines for the person about tools that the settings name and the server does not have; none where the server could not be
 * asked for all of them.
 */
export async function absentTools(
  settings: ToolSettings | undefined,
  { tools, complete }: Pick<FoundServer, 'tools' | 'complete'>,
): Promise<readonly string[]> {
  if (settings === undefined || tools === undefined || !complete) return [];
  const names = tools.map(({ name }) => name);
  const { toolView } = await import('@skep/proxy/steps/tool-view.ts');
  const { realName, offers } = toolView({ overrides: settings.overrides });
  const has = names.length === 0 ? 'it has no tools' : `it has ${list(names.filter((name) => offers(name)))}`;
  const overridden = Object.keys(settings.overrides ?? {}).filter((name) => !names.includes(name));
  const filtered = (settings.filter ?? []).filter((shown) => !names.includes(realName(shown) ?? ''));
  const renamed = (name: string): string | undefined => {
    const shown = Object.hasOwn(settings.overrides ?? {}, name)
      ? settings.overrides?.[name]?.name
      : undefined;
    return names.includes(name) && shown ? `clients see it as "${printable(shown)}"` : undefined;
  };
  return [
    ...overridden.map(
      (name) =>
        `the server has no tool "${printable(name)}", which --tools-override names; ${suggestion(name, names, has)}`,
    ),
    ...filtered.map(
      (name) =>
        `the server has no tool "${printable(name)}", which --tools names; ${renamed(name) ?? suggestion(name, names, has)}`,
    ),
  ];
}

function list(names: readonly string[]): string {
  const shown = names.slice(0, SHOWN_NAMES).map((name) => printable(name));
  const more = names.length - shown.length;
  return more === 0 ? shown.join(', ') : `${shown.join(', ')} and ${more} more`;
}

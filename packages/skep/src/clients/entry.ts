import { isDeepStrictEqual } from 'node:util';
import { isRecord } from '@skep/core/json/is-record.ts';
import type { Client } from './table.ts';

/** What a client is to connect to: a URL with the transport behind it, or a command to run. */
export type Target =
  | { readonly url: string; readonly mode: 'streamable-http' | 'sse' }
  | { readonly command: readonly [program: string, ...args: string[]] };

export type Entry = Readonly<Record<string, unknown>>;

/** The entry of a client's file that leads to the target. */
export function entryFor(client: Client, name: string, target: Target): Entry {
  const { words = {}, wordMember = 'type', also = {} } = client;
  const word = 'command' in target ? words.stdio : target.mode === 'sse' ? words.sse : words.http;
  return {
    // Goose wants the name in its maps too.
    ...(client.isList === true || client.format === 'yaml' ? { name } : {}),
    ...(word === undefined ? {} : { [wordMember]: word }),
    ...('command' in target
      ? commandOf(client, target.command)
      : { [urlMember(client, target)]: target.url }),
    ...also,
  };
}

function urlMember({ url, sseUrl = url }: Client, target: { readonly mode: string }): string {
  return target.mode === 'sse' ? sseUrl : url;
}

function commandOf({ command }: Client, [program, ...args]: readonly [string, ...string[]]): Entry {
  if (command === 'list') return { command: [program, ...args] };
  return { [command ?? 'command']: program, args };
}

/** True when an entry of the client's file leads to the target, whatever else it says. */
export function leadsTo(client: Client, value: unknown, target: Target): boolean {
  if (!isRecord(value)) return false;
  const wanted = 'command' in target ? commandOf(client, target.command) : undefined;
  if (wanted) return Object.entries(wanted).every(([member, one]) => isDeepStrictEqual(value[member], one));
  return (
    'url' in target && [client.url, client.sseUrl ?? client.url].some((one) => value[one] === target.url)
  );
}

/** The entry with what the person added to it, and nothing left of another form. */
export function mergeEntry(client: Client, present: unknown, wanted: Entry): Entry {
  if (!isRecord(present)) return wanted;
  const forms = [
    client.url,
    client.sseUrl ?? client.url,
    client.command === 'cmd' ? 'cmd' : 'command',
    'args',
  ];
  const own = Object.entries(present).filter(([member]) => !forms.includes(member) || member in wanted);
  const also = Object.keys(client.also ?? {}).filter((member) => Object.hasOwn(present, member));
  const kept = Object.entries(wanted).filter(([member]) => !also.includes(member));
  return { ...Object.fromEntries(own), ...Object.fromEntries(kept) };
}

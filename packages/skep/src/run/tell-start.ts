import { paint } from '@skep/core/terminal/paint.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { tokensText } from '@skep/core/catalog/tool-weight.ts';
import type { Terminal } from '@skep/core/command/terminal.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import type { Progress } from '../print/progress.ts';
import { cardFacts, toFacts } from '../print/table.ts';
import type { RunConfig } from '../run-config/run-config.ts';
import type { FoundWeight } from '../supervisor/found-server.ts';
import type { Endpoint, ShownCard, Tell } from '../supervisor/protocol.ts';

const INDENT = '  ';
import { frontUrl } from '../supervisor/front-state.ts';

/** Shows a start to the person who waits: steps as progress, a crashing server's last lines as they are. */
export function startEvents(progress: Progress, terminal: Terminal): Tell {
  return (event) => {
    if (event.kind === 'step') return progress.step(event.title);
    if (event.kind === 'saved' || event.kind === 'card') return;
    progress.end();
    if (event.kind === 'told') terminal.err(event.text);
    else if (event.kind === 'warning') terminal.err(`Warning: ${printable(event.text)}\n`);
    else terminal.err(`  ${printable(event.line)}\n`);
  };
}

/** A workload as it was started, which the person is shown. */
export function asStarted(config: RunConfig, { hardening = config.hardening }: Endpoint): RunConfig {
  return hardening === undefined ? config : { ...config, hardening };
}

/** How a start ended, for people: a sentence without its end. */
export function whenReady(name: string, { readiness }: Endpoint): string {
  const running = `${name} is running`;
  if (readiness?.is === 'unchecked') return `${running}, and was not asked whether it answers`;
  const named = readiness?.server === undefined ? running : `${running} (${readiness.server})`;
  return readiness?.tools === undefined ? named : `✓ ${named}: ${toolsText(readiness.tools)}`;
}

/** `26 tools, ~9.8 k tokens`. */
export function toolsText({ count, tokens, complete }: FoundWeight): string {
  if (count === 0) return 'no tools';
  const many = `${count}${complete ? '' : ' or more'} ${count === 1 && complete ? 'tool' : 'tools'}`;
  return `${many}, ${tokensText(tokens)}`;
}

/** A permission card below what it belongs to. */
export function cardText(card: ShownCard, { liveErr, width, colorErr }: Terminal): string {
  const screen = { widthOut: liveErr ? width - INDENT.length : Infinity, colorOut: colorErr };
  return toFacts(cardFacts(card), screen).replaceAll(/^(?=.)/gm, INDENT);
}

/** A workload that runs, as the person who started it is told of it. */
export interface Started {
  readonly name: string;
  readonly url: string;
  readonly endpoint: Endpoint;
  readonly card: ShownCard;
}

/**
 * Prints what a person wanted of a run: the URL (at the front door, where that is open) on stdout, and on stderr what the server may do and what there is to do
 * with it.
 */
export function tellReady({ name, url, endpoint, card }: Started, terminal: Terminal): void {
  const { front } = endpoint;
  if (front?.is === 'closed') terminal.err(`Warning: ${printable(front.why)}\n`);
  const shown = front?.is === 'open' ? frontUrl(front.port, name, url) : url;
  terminal.out(`${shown}\n`);
  const { liveOut, liveErr, width } = terminal;
  // What went to a file stands above nothing.
  // Clients are given the front door alone.
  const command = front?.is === 'open' ? `, or with skep connect CLIENT ${name}` : '';
  const told = `Connect an MCP client to ${liveOut ? 'the URL above' : shown}${command}.`;
  const next = ['logs', 'stop', 'rm'].map((command) => `skep ${command} ${name}`);
  const line = next.join('   ');
  const isTooWide = liveErr && line.length + 2 > width;
  const wrapped = (text: string): string => `${liveErr ? wrapText(text, width).join('\n') : text}\n`;
  const hints = (isTooWide ? next : [line]).map((one) => `${INDENT}${one}\n`).join('');
  const ready = wrapped(whenReady(name, endpoint)).replace(/^✓/u, (mark) =>
    paint('green', mark, terminal.colorErr),
  );
  terminal.err(`${ready}${cardText(card, terminal)}${wrapped(told)}${hints}`);
}

/** Names what a removed workload leaves behind, and how that goes away as well. */
export function tellStays(
  name: string,
  stays: readonly string[],
  terminal: Pick<Terminal, 'err' | 'liveErr' | 'width'>,
): void {
  if (stays.length === 0) return;
  const told = printable(
    `The data of ${name} stays, for the next skep run of that name (skep rm --data ${name} removes it):`,
  );
  const lines = terminal.liveErr ? wrapText(told, terminal.width) : [told];
  terminal.err(`${[...lines, ...stays.map((one) => `  ${printable(one)}`)].join('\n')}\n`);
}

import { parsedJson } from '@skep/core/json/parsed-json.ts';
import { findElements, findMembers, findPath, rawAt, splice, type Edit } from '@skep/core/json/scan.ts';
import { hasCode, SkepError } from '@skep/core/errors/skep-error.ts';
import { copyPiece, withEdits, type Response } from '../message/json-rpc.ts';

/** What clients see of one tool; at least one of the two is there. */
export interface ToolOverride {
  readonly name?: string | undefined;
  readonly description?: string | undefined;
}

export interface ToolSettings {
  /** Names that clients see and may call; all where absent. */
  readonly filter?: readonly string[] | undefined;
  /** By the server's own name. */
  readonly overrides?: Readonly<Record<string, ToolOverride>> | undefined;
}

/** The tools of a server as its clients see them (docs/behaviour/proxy.md#tools). */
export interface ToolView {
  /** What the server calls the tool that clients call `shown`; undefined where clients have no such tool. */
  readonly realName: (shown: string) => string | undefined;
  /** True where clients have the tool that the server calls `real`. */
  readonly offers: (real: string) => boolean;
  /**
   * An answer to `tools/list` as clients see it: every character but names, descriptions and hidden tools stays. Undefined
   * where the answer cannot be understood, so that nothing hidden is shown.
   */
  readonly show: (answer: Response) => Response | undefined;
}

/** Fails with `usage/invalid-value` where two tools would have one name, a name is empty, or an override changes nothing. */
export function toolView({ filter, overrides = {} }: ToolSettings): ToolView {
  const shownBy = new Map(Object.entries(overrides).map(([real, { name }]) => [real, name || real]));
  const realBy = realNames(shownBy);
  if (filter?.includes('') || shownBy.has('')) throw invalid('the name of a tool is empty');
  const idle = Object.entries(overrides).find(([, { name, description }]) => !name && !description);
  if (idle) throw invalid(`the override of "${idle[0]}" has neither a name nor a description`);
  const offered = filter === undefined ? undefined : new Set(filter);

  const realName = (shown: string): string | undefined => {
    if (offered !== undefined && !offered.has(shown)) return undefined;
    const real = realBy.get(shown) ?? shown;
    // What has another name for clients has lost its own.
    return (shownBy.get(real) ?? real) === shown ? real : undefined;
  };
  // A tool whose name another one is shown under is called by nobody.
  const offers = (real: string): boolean => realName(shownBy.get(real) ?? real) === real;
  const shownTool = (tool: string): string | undefined => {
    const members = findMembers(tool, 0, MEMBERS);
    const at = members?.get('name');
    const real = at && parsedJson(rawAt(tool, at));
    if (members === undefined || at === undefined || typeof real !== 'string')
      throw new SkepError('proxy/withheld');
    const shown = shownBy.get(real) ?? real;
    if (!offers(real)) return undefined;
    const edits: Edit[] = shown === real ? [] : [{ span: at, text: JSON.stringify(shown) }];
    const description = Object.hasOwn(overrides, real) ? overrides[real]?.description : undefined;
    if (!description) return splice(tool, edits);
    const text = JSON.stringify(description);
    const before = members.get('description');
    const added = {
      span: { start: at.start, end: at.start },
      text: `${JSON.stringify(shown)},"description":${text}`,
    };
    return splice(tool, before === undefined ? [{ ...added, span: at }] : [...edits, { span: before, text }]);
  };
  const shownList = remembering((list) => shownTools(list, shownTool));
  return { realName, offers, show: (answer) => shownAnswer(answer, shownList) };
}

const MEMBERS = new Set(['name', 'description']);

function realNames(shownBy: ReadonlyMap<string, string>): ReadonlyMap<string, string> {
  const realBy = new Map<string, string>();
  for (const [real, shown] of shownBy) {
    const other = realBy.get(shown);
    if (other !== undefined)
      throw invalid(`the tools "${other}" and "${real}" would both be shown as "${shown}"`);
    realBy.set(shown, real);
  }
  return realBy;
}

function invalid(message: string): SkepError {
  return new SkepError('usage/invalid-value', {
    message,
    hint: 'correct --tools or the file of --tools-override',
  });
}

/** Of an answer with tools those that clients see; one without shows none. */
function shownAnswer(
  answer: Response,
  shownList: (list: string) => string | undefined,
): Response | undefined {
  if (answer.failed) return answer;
  const { text } = answer;
  const result = findPath(text, ['result']);
  const members = result && findMembers(text, result.start, TOOLS);
  if (members === undefined) return undefined;
  const span = members.get('tools');
  if (span === undefined) return answer;
  const list = rawAt(text, span);
  const shown = shownList(list);
  if (shown === undefined) return undefined;
  if (shown === list) return answer;
  return withEdits(answer, [{ span, text: shown }]);
}

/** A list that nothing is to be changed of stays as it is written; undefined for what is no list of tools. */
function shownTools(list: string, shownTool: (tool: string) => string | undefined): string | undefined {
  if (!list.startsWith('[')) return undefined;
  try {
    const tools = findElements(list).map((at) => rawAt(list, at));
    const shown = tools.map(shownTool);
    if (shown.every((tool, at) => tool === tools[at])) return list;
    return `[${shown.filter((tool) => tool !== undefined).join(',')}]`;
  } catch (error) {
    if (hasCode(error, 'proxy/withheld')) return undefined;
    throw error;
  }
}

/** A longer list is not remembered. */
const MAX_REMEMBERED = 1024 * 1024;

/** Servers tell the same list again and again. */
function remembering(shownBy: (list: string) => string | undefined): (list: string) => string | undefined {
  let last: { readonly list: string; readonly shown: string | undefined } | undefined;
  return (list) => {
    if (last?.list === list) return last.shown;
    if (list.length > MAX_REMEMBERED) return shownBy(list);
    // What is kept is to keep nothing else of its answer.
    const copy = copyPiece(list);
    const shown = shownBy(copy);
    last = { list: copy, shown };
    return shown;
  };
}

const TOOLS = new Set(['tools']);

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { RESERVED_NAMES } from '../../config/shape.ts';
import { badRequest } from '../route/parameter.ts';
import type { Route } from '../route/route.ts';
import type { ApiRequest, Run } from './request.ts';

const MAX_SEGMENT = 2048;

/** A path of the table. */
interface Leaf {
  readonly pattern: string;
  /** Names of its parameters, in their order. */
  readonly names: readonly string[];
  readonly rows: Map<string, Route>;
}

/** The paths that begin alike. */
interface Branch {
  readonly literals: Map<string, Branch>;
  parameter?: Branch;
  /** A path that ends here. */
  leaf?: Leaf;
  /** A path that ends in `*`, which is everything from here on. */
  rest?: Leaf;
}

/** A path of the table, and its parameters in a request target. */
interface Found {
  readonly leaf: Leaf;
  readonly params: ApiRequest['params'];
}

/** Targets that are asked for again and again are not taken apart again; at most so many, none longer than that. */
const MAX_KNOWN = 10_000;
const MAX_KNOWN_TARGET = 512;

/** Finds the row of the table that a request is for. A literal segment counts before a parameter, a parameter before `*`. */
export function find(routes: readonly Route[]): Run {
  const root: Branch = { literals: new Map() };
  for (const route of routes) for (const pattern of route.paths) plant(root, pattern, route);
  const known = new Map<string, Found>();
  return (request) => {
    const { url, method } = request;
    const found = known.get(url) ?? lookUp(root, url);
    if (found === undefined) return undefined;
    if (url.length <= MAX_KNOWN_TARGET && !known.has(url)) {
      if (known.size >= MAX_KNOWN) known.clear();
      known.set(url, found);
    }
    const { pattern, rows } = found.leaf;
    request.pattern = pattern;
    request.params = found.params;
    request.row = rows.get(method === 'HEAD' ? 'GET' : method);
    if (request.row === undefined) request.allow = allowOf(rows);
    return undefined;
  };
}

function lookUp(root: Branch, url: string): Found | undefined {
  const path = pathOf(url);
  const values: string[] = [];
  const leaf = path.startsWith('/') ? walk(root, path.split('/').map(decode), { at: 1, values }) : undefined;
  if (leaf === undefined) return undefined;
  return { leaf, params: Object.fromEntries(leaf.names.map((name, at) => [name, values[at]])) };
}

/** Refuses paths and methods that the table does not have. The root form captures no first segment of other endpoints. */
export function refuseUnknown(request: ApiRequest): undefined {
  const { row, pattern, params, allow, added } = request;
  const { registry } = params;
  const isReserved =
    pattern?.startsWith('/{registry}/') === true &&
    typeof registry === 'string' &&
    RESERVED_NAMES.has(registry);
  if (pattern === undefined || isReserved) throw new SkepError('registry/no-such-route');
  if (row !== undefined) return undefined;
  added.push('allow', allow);
  throw new SkepError('registry/method-not-allowed');
}

function plant(root: Branch, pattern: string, route: Route): void {
  const names: string[] = [];
  let branch = root;
  for (const segment of pattern.slice(1).split('/')) {
    const name = /^\{(\w+)\}$/.exec(segment)?.[1];
    if (name === undefined && segment !== '*') {
      const next: Branch = branch.literals.get(segment) ?? { literals: new Map() };
      branch.literals.set(segment, next);
      branch = next;
    } else {
      names.push(name ?? '*');
      if (name !== undefined) branch = branch.parameter ??= { literals: new Map() };
    }
  }
  const end = pattern.endsWith('*') ? 'rest' : 'leaf';
  const leaf = (branch[end] ??= { pattern, names, rows: new Map() });
  leaf.rows.set(route.method, route);
}

interface Place {
  readonly at: number;
  /** Those of the parameters before. */
  readonly values: string[];
}

function walk(branch: Branch, segments: readonly string[], { at, values }: Place): Leaf | undefined {
  const segment = segments[at];
  if (segment === undefined) return branch.leaf;
  const literal = branch.literals.get(segment);
  const found = literal === undefined ? undefined : walk(literal, segments, { at: at + 1, values });
  if (found !== undefined) return found;
  const { parameter, rest } = branch;
  if (parameter !== undefined) {
    if (segment.length > MAX_SEGMENT) throw badRequest('a path segment is too long');
    values.push(segment);
    const below = walk(parameter, segments, { at: at + 1, values });
    if (below !== undefined) return below;
    values.pop();
  }
  if (rest !== undefined) values.push(segments.slice(at).join('/'));
  return rest;
}

/** The path of a request target, which a client may also send as a whole URL (RFC 9112 §3.2.2). */
function pathOf(url: string): string {
  const target = url.startsWith('/') ? url : url.replace(/^https?:\/\/[^/?#]*/i, '');
  const end = target.search(/[?#]/);
  return end === -1 ? target : target.slice(0, end);
}

function decode(segment: string): string {
  if (!segment.includes('%')) return segment;
  try {
    return decodeURIComponent(segment);
  } catch (cause) {
    const message = `invalid URL encoding in path segment "${segment.slice(0, 100)}"`;
    throw new SkepError('registry/bad-request', { message, cause });
  }
}

function allowOf(rows: ReadonlyMap<string, Route>): string {
  return [...rows.keys()].flatMap((name) => (name === 'GET' ? ['GET', 'HEAD'] : name)).join(', ');
}

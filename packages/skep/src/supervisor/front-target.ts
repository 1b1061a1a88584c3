import { readTarget, type RequestTarget } from '@skep/proxy/call/target.ts';
import { isWorkloadName } from '../settings/workload-name.ts';

/** A request at the front door for one workload. */
export interface FrontTarget {
  readonly name: string;
  /** As the workload's own proxy would see it. */
  readonly target: RequestTarget;
}

/** Printable ASCII but quotes, `#`, `<`, `>`, `\`, `^`, `` ` ``, `{`, `|`, `}`, which no target may hold (RFC 3986 §2). */
const CHARACTERS = /^[!$%&'()*+,./0-9:;=?@A-Z[\]_a-z~-]*$/u;
/** Encodings of `.`, `/` and `\`, which somebody on the way might decode. */
const DISGUISED = /%(?:2e|2f|5c)/iu;

/**
 * The workload that a request names, and the rest of its target. Undefined where the path could be read in two ways, by
 * us and by whoever else looks at it: encoded or empty segments, `.` and `..`, or anything beside letters, digits,
 * `.`, `_` and `-` in the name, which is compared as it is.
 */
export function readFrontTarget(url: string): FrontTarget | undefined {
  const { authority, target } = readTarget(url);
  const query = target.indexOf('?');
  const path = query === -1 ? target : target.slice(0, query);
  if (!CHARACTERS.test(target) || DISGUISED.test(path)) return undefined;
  const [first, name = '', ...rest] = path.split('/');
  if (first !== '' || rest.length === 0 || !isWorkloadName(name)) return undefined;
  const isAmbiguous = (segment: string, at: number): boolean =>
    segment === '.' || segment === '..' || (segment === '' && at !== rest.length - 1);
  if (rest.some(isAmbiguous)) return undefined;
  return { name, target: { authority, target: target.slice(name.length + 1) } };
}

/** Clients send few targets, each again and again. */
const MAX_REMEMBERED = 256;
const MAX_REMEMBERED_LENGTH = 256;

/** As `readFrontTarget`, judging each target once while few are asked for. */
export function rememberingFrontTargets(): typeof readFrontTarget {
  const judged = new Map<string, FrontTarget>();
  return (url) => {
    const known = judged.get(url);
    if (known !== undefined) return known;
    const target = readFrontTarget(url);
    if (target === undefined || url.length > MAX_REMEMBERED_LENGTH) return target;
    if (judged.size >= MAX_REMEMBERED) judged.clear();
    judged.set(url, target);
    return target;
  };
}

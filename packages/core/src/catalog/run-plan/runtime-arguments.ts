import type { ServerArgument } from '../server-json.ts';
import { requirementOf, type Requirement, type TemplateInput } from './requirement.ts';

/** An option for the container engine or package runner that Skep does not take from a catalogue. */
export interface NotApplied {
  readonly flag: string;
  readonly value?: string;
}

const ENV_FLAGS = new Set(['-e', '--env']);
/** Flags that say how a foreground container is started, which Skep decides itself. */
const IMPLIED = new Set('run -i -t -it --interactive --tty --rm --init -y --yes'.split(' '));
const TAKES_VALUE = new Set(
  '-v --volume --mount -p --publish --network --net --user -u --name --platform --add-host --entrypoint'.split(
    ' ',
  ),
);

interface Token {
  readonly text: string;
  /** The argument the token came from: its template variables and description. */
  readonly input: TemplateInput;
}

function tokensOf(argument: ServerArgument): Token[] {
  const input: TemplateInput = argument;
  const value = argument.value ?? argument.default ?? '';
  const texts = argument.type === 'named' && argument.name ? [argument.name, value] : [value];
  return texts.filter((text) => text !== '').map((text) => ({ text, input }));
}

const VOLUME_FLAGS = new Set(['-v', '--volume', '--mount']);

/** The path inside of a volume of the engine's own, `name:/path` or `/path`; undefined for a path of the host. */
function volumePath(flag: string, value: string): string | undefined {
  if (flag !== '--mount') return /^(?:[A-Za-z0-9][\w.-]*:)?(\/[^:]*)$/.exec(value)?.[1];
  const parts = new Map(
    value.split(',').map((part) => {
      const [key = '', text = ''] = part.split('=', 2);
      return [key, text];
    }),
  );
  if ((parts.get('type') ?? 'volume') !== 'volume') return undefined;
  return parts.get('dst') ?? parts.get('target') ?? parts.get('destination');
}

/** `K=v`, `K={variable}` or `K` alone, which passes the caller's own variable on. */
function envOf({ text, input }: Token): Requirement {
  const equals = text.indexOf('=');
  if (equals < 0) return requirementOf(text, { ...input, value: undefined, default: undefined });
  return requirementOf(text.slice(0, equals), { ...input, value: text.slice(equals + 1) });
}

/** `--flag=value` as two tokens, anything else as it is. */
function split(token: Token): Token[] {
  const match = /^(--[a-z-]+)=(.*)$/s.exec(token.text);
  if (match?.[1] === undefined) return [token];
  return [
    { ...token, text: match[1] },
    { ...token, text: match[2] ?? '' },
  ];
}

/**
 * Reads `runtimeArguments`, options of `docker run` or of a package runner. `isSubject` recognises the image
 * or package itself, which many entries repeat here; everything after it is ignored. `env` comes from `-e`
 * and `--env`, `volumes` from what names a volume; paths of the host, ports, networks and so on are shown to the person, who may ask for them with flags of
 * the own command line.
 */
export function planRuntimeArguments(
  list: readonly ServerArgument[] | null | undefined,
  isSubject: (text: string) => boolean,
) {
  const tokens = (list ?? []).flatMap(tokensOf).flatMap(split);
  const env: Requirement[] = [];
  const notApplied: NotApplied[] = [];
  const volumes: string[] = [];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i];
    if (token === undefined || isSubject(token.text)) break;
    if (IMPLIED.has(token.text)) {
      // Real entries write the flag's presence as a value: `--rm` with value `true`.
      if (tokens[i + 1]?.text === 'true') i++;
      continue;
    }
    const next = tokens[i + 1];
    if (ENV_FLAGS.has(token.text) && next !== undefined) {
      env.push(envOf(next));
      i++;
      continue;
    }
    const volume = VOLUME_FLAGS.has(token.text) && next ? volumePath(token.text, next.text) : undefined;
    if (volume !== undefined) {
      volumes.push(volume);
      i++;
    } else if (next !== undefined && (TAKES_VALUE.has(token.text) || next.input === token.input)) {
      notApplied.push({ flag: token.text, value: next.text });
      i++;
    } else {
      notApplied.push({ flag: token.text });
    }
  }
  return { env, notApplied, volumes };
}

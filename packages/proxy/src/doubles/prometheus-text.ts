/** One sample of a scrape. */
export interface Sample {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

const NAME = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/u;
const LABEL = /^(?<name>[a-zA-Z_][a-zA-Z0-9_]*)="(?<value>(?:[^"\\\n]|\\["\\n])*)"(?:,|$)/u;
const TYPES = new Set(['counter', 'gauge', 'histogram', 'summary', 'untyped']);
/** What a histogram adds to its name. */
const SERIES = /_(?:bucket|sum|count)$/u;

/** Reads the Prometheus text format 0.0.4 as strictly as it is written down. Throws for what breaks a rule of it. */
export function parsePrometheus(text: string): readonly Sample[] {
  if (!text.endsWith('\n')) throw new SyntaxError('the last line has no end');
  const types = new Map<string, string>();
  const seen = new Set<string>();
  const samples = text.split('\n').flatMap((line): Sample[] => {
    if (line === '') return [];
    if (line.startsWith('#')) {
      const [, keyword, name = '', type = ''] = /^# (TYPE) (\S+) (\S+)$/u.exec(line) ?? [];
      if (keyword !== 'TYPE') return [];
      if (!NAME.test(name) || !TYPES.has(type) || types.has(name)) throw new SyntaxError(line);
      types.set(name, type);
      return [];
    }
    const sample = sampleOf(line);
    const family = types.has(sample.name) ? sample.name : sample.name.replace(SERIES, '');
    if (!types.has(family)) throw new SyntaxError(`no type before: ${line}`);
    const key = JSON.stringify([
      sample.name,
      Object.entries(sample.labels).toSorted(([a], [b]) => (a < b ? -1 : 1)),
    ]);
    if (seen.has(key)) throw new SyntaxError(`twice: ${line}`);
    seen.add(key);
    return [sample];
  });
  return samples;
}

function sampleOf(line: string): Sample {
  const [, name = '', inside, value = ''] = /^([^\s{]+)(?:\{(.*)\})? (\S+)(?: -?\d+)?$/u.exec(line) ?? [];
  const number = value === '+Inf' ? Infinity : value === '-Inf' ? -Infinity : Number(value);
  if (!NAME.test(name) || value === '' || (Number.isNaN(number) && value !== 'NaN'))
    throw new SyntaxError(line);
  return { name, labels: labelsOf(inside ?? '', line), value: number };
}

function labelsOf(inside: string, line: string): Readonly<Record<string, string>> {
  const labels: Record<string, string> = {};
  for (let rest = inside; rest !== '';) {
    const match = LABEL.exec(rest);
    const { name = '', value = '' } = match?.groups ?? {};
    if (match === null || Object.hasOwn(labels, name)) throw new SyntaxError(line);
    labels[name] = value.replaceAll(/\\(["\\n])/gu, (_all, escaped: string) =>
      escaped === 'n' ? '\n' : escaped,
    );
    rest = rest.slice(match[0].length);
  }
  return labels;
}

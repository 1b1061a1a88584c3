/** A stretch of one line that looks the same throughout. */
interface Run {
  /** Where it begins, counted in characters. */
  readonly column: number;
  readonly text: string;
  readonly look: string;
}

const CELL = { width: 8.4, height: 19 };
const MARGIN = { x: 20, top: 46, bottom: 20 };

/** Class names of the select graphic rendition codes (ECMA-48) that set a look; a code of one group replaces the group's other. */
const LOOKS: Readonly<
  Record<number, { readonly group: 'weight' | 'faint' | 'colour'; readonly look: string }>
> = {
  1: { group: 'weight', look: 'bold' },
  2: { group: 'faint', look: 'dim' },
  31: { group: 'colour', look: 'red' },
  32: { group: 'colour', look: 'green' },
  33: { group: 'colour', look: 'yellow' },
  36: { group: 'colour', look: 'cyan' },
};

/** Sets the look; what it captures are the codes. */
const SEQUENCE = new RegExp(String.raw`\u001B\[([\d;]*)m`);

const STYLE = `text { font: 14px ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace; fill: #d6deeb; white-space: pre; }
.bold { font-weight: 700; fill: #ffffff; } .dim { fill: #8292a8; } .red { fill: #ff7b72; } .green { fill: #7ee787; }
.yellow { fill: #f2cc60; } .cyan { fill: #79c0ff; }`;

/** The content of a terminal, as `tmux capture-pane -e` prints it, as a picture whose text is text. */
export function toSvg(captured: string, { columns, title }: { columns: number; title: string }): string {
  const lines = captured.trimEnd().split('\n').map(runsOf);
  const width = Math.ceil(columns * CELL.width + 2 * MARGIN.x);
  const height = MARGIN.top + lines.length * CELL.height + MARGIN.bottom;
  const texts = lines.flatMap((runs, row) => {
    const y = MARGIN.top + (row + 0.75) * CELL.height;
    return runs.map(({ column, text, look }) => {
      const x = (MARGIN.x + column * CELL.width).toFixed(1);
      return `<text x="${x}" y="${y}"${look === '' ? '' : ` class="${look}"`}>${escaped(text)}</text>`;
    });
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${width} ${height}" width="${width}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title>`,
    `<style>${STYLE}</style>`,
    `<rect width="${width}" height="${height}" rx="10" fill="#0f1722"/>`,
    ...[0, 1, 2].map((at) => `<circle cx="${24 + at * 20}" cy="23" r="6" fill="#33415a"/>`),
    ...texts,
    '</svg>',
    '',
  ].join('\n');
}

/** Stretches without a visible character are left out. */
function runsOf(line: string): Run[] {
  const runs: Run[] = [];
  const looks = new Map<string, string>();
  let column = 0;
  // Every second part is what a sequence that sets the look holds.
  for (const [at, part] of line.split(SEQUENCE).entries()) {
    if (at % 2 === 1) {
      for (const code of part.split(';')) change(looks, Number(code));
      continue;
    }
    if (part.trim() !== '') {
      const indent = part.length - part.trimStart().length;
      runs.push({ column: column + indent, text: part.trim(), look: [...looks.values()].join(' ') });
    }
    column += part.length;
  }
  return runs;
}

function change(looks: Map<string, string>, code: number): void {
  const set = LOOKS[code];
  if (set) looks.set(set.group, set.look);
  else if (code === 0) looks.clear();
  else if (code === 39) looks.delete('colour');
  else if (code === 22) for (const group of ['weight', 'faint']) looks.delete(group);
}

function escaped(text: string): string {
  return text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('>', '&gt;');
}

import { SkepError } from '@skep/core/errors/skep-error.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import { wrapText } from '@skep/core/settings/to-help.ts';
import { paint, type Format } from '@skep/core/terminal/paint.ts';
import { printable } from '@skep/core/terminal/printable.ts';
import { commonSettings, defineCommand, formatSettings } from '../cli/command.ts';
import type { Context } from '../cli/context.ts';
import type { Verdict } from '../doctor/check.ts';
import { CHECKS } from '../doctor/checks.ts';
import { examine, type Examined } from '../doctor/examine.ts';
import { openProgress } from '../print/progress.ts';
import { toJsonText } from '../workloads/to-json.ts';

const CHECK_MS = 10_000;
const PROGRESS_AFTER_MS = 1_000;
const INDENT = ' '.repeat(12);

const MARKS: Readonly<Record<Verdict, readonly [string, Format]>> = {
  ok: ['✓', 'green'],
  note: ['·', 'dim'],
  warning: ['!', 'yellow'],
  broken: ['✗', 'red'],
};

export const doctor = defineCommand({
  usage: 'skep doctor [flags]',
  summary: 'Look for what keeps servers from running here, and say what to do about it',
  description: [
    'Looks at the machine, runtimes, what Skep keeps, the supervisor and the catalogue, and changes nothing. Ends with status 1 where something is broken; warnings and notes do not count.',
  ],
  examples: [
    { command: 'skep doctor', what: 'Everything that was looked at' },
    { command: 'skep doctor --fix', what: 'Mend what can be mended without losing anything' },
  ],
  settings: [
    ...settingsOf({ group: 'Selection' }, [
      flag('bool', 'fix', 'Mend permissions, leftover locks and sockets, and damaged caches', {
        default: false,
      }),
    ]),
    ...formatSettings,
    ...commonSettings,
  ],
  async run({ values }, context) {
    const found = await whileTelling(
      context,
      examine(CHECKS, context, { timeoutMs: CHECK_MS, fix: values.fix }),
    );
    const { terminal } = context;
    if (values.format === 'json') terminal.out(toJsonText(found.map(toItem)));
    else terminal.out(`${found.map((one) => toText(one, terminal)).join('')}\n${summaryOf(found)}\n`);
    const broken = found.filter(({ verdict }) => verdict === 'broken').map(({ check }) => check.code);
    if (broken.length > 0) throw new SkepError('doctor/broken', { message: `broken: ${broken.join(', ')}` });
  },
});

/** Whoever looks on sees after a second that something is being done. */
async function whileTelling<T>({ terminal, clock }: Context, work: Promise<T>): Promise<T> {
  const progress = openProgress(terminal);
  const late = clock.after(PROGRESS_AFTER_MS, () => {
    if (terminal.liveErr) progress.step('Looking at this machine');
  });
  try {
    return await work;
  } finally {
    late.cancel();
    progress.end();
  }
}

function toItem({ check, verdict, text, remedy = check.remedy, fixed }: Examined) {
  const { code, title } = check;
  return { code, title, verdict, text, remedy: verdict === 'ok' ? null : remedy, fixed: fixed ?? null };
}

function toText(
  { check, verdict, text, remedy = check.remedy, fixed }: Examined,
  { widthOut, colorOut }: Context['terminal'],
): string {
  const [mark, format] = MARKS[verdict];
  const wrapped = (line: string): string => {
    if (widthOut === Infinity) return line;
    return wrapText(line, Math.max(20, widthOut - INDENT.length)).join(`\n${INDENT}`);
  };
  const lines = [
    `${paint(format, mark, colorOut)} ${check.code} ${wrapped(printable(`${check.title}: ${text}`))}`,
    ...(fixed === undefined ? [] : [`${INDENT}${wrapped(printable(`fixed: ${fixed}`))}`]),
    ...(verdict === 'ok' ? [] : [`${INDENT}${wrapped(printable(`→ ${remedy}`))}`]),
  ];
  return lines.map((line) => `${line}\n`).join('');
}

function summaryOf(found: readonly Examined[]): string {
  const count = (verdict: Verdict): number => found.filter((one) => one.verdict === verdict).length;
  const many = (number: number, one: string): string => `${number} ${one}${number === 1 ? '' : 's'}`;
  return `${many(found.length, 'check')}: ${count('broken')} broken, ${many(count('warning'), 'warning')}, ${many(count('note'), 'note')}`;
}

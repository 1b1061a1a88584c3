import { SkepError } from '../errors/skep-error.ts';

/** Nanoseconds per unit of Go's `time.ParseDuration`; integers keep `0.1s` exact. */
const UNITS: ReadonlyMap<string, bigint> = new Map([
  ['ns', 1n],
  ['us', 1_000n],
  ['µs', 1_000n],
  ['μs', 1_000n],
  ['ms', 1_000_000n],
  ['s', 1_000_000_000n],
  ['m', 60_000_000_000n],
  ['h', 3_600_000_000_000n],
]);

/** Go keeps a duration in 64 signed bits of nanoseconds; beyond that ParseDuration fails. */
const MAX_NANOS = 2n ** 63n - 1n;

const PART = /(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|μs|ms|s|m|h)/uy;

/**
 * Milliseconds of a Go duration: `30s`, `1m`, `2m30s`, `1.5h`, `500ms`, `0`, with an optional sign. No spaces and no
 * bare numbers but `0`. Fails with `usage/invalid-value`.
 */
export function parseDuration(text: string): number {
  const sign = text.startsWith('-') ? -1 : 1;
  const body = text.replace(/^[+-]/u, '');
  if (body === '0') return 0;
  const nanos = body.length <= 100 ? sumParts(body) : undefined;
  if (nanos === undefined || nanos > MAX_NANOS) throw invalid(text);
  return (sign * Number(nanos)) / 1e6;
}

/** Go's `Duration.String()` of milliseconds: `30m0s`, `1.5s`, `500ms`, `0s`; no parts of nanoseconds. */
export function formatDuration(milliseconds: number): string {
  const nanos = BigInt(Math.round(Math.abs(milliseconds) * 1e6));
  const sign = milliseconds < 0 && nanos !== 0n ? '-' : '';
  if (nanos === 0n) return '0s';
  if (nanos < 1_000n) return `${sign}${nanos}ns`;
  if (nanos < 1_000_000n) return `${sign}${decimal(nanos, 1_000n)}µs`;
  if (nanos < 1_000_000_000n) return `${sign}${decimal(nanos, 1_000_000n)}ms`;
  const minutes = nanos / 60_000_000_000n;
  const seconds = `${decimal(nanos % 60_000_000_000n, 1_000_000_000n)}s`;
  if (minutes === 0n) return `${sign}${seconds}`;
  const hours = minutes / 60n;
  const rest = `${minutes % 60n}m${seconds}`;
  return hours === 0n ? `${sign}${rest}` : `${sign}${hours}h${rest}`;
}

function sumParts(body: string): bigint | undefined {
  if (body === '') return undefined;
  let total = 0n;
  PART.lastIndex = 0;
  while (PART.lastIndex < body.length) {
    const [, amount, unit] = PART.exec(body) ?? [];
    if (amount === undefined || unit === undefined) return undefined;
    const [whole = '', fraction = ''] = amount.split('.');
    const scale = UNITS.get(unit) ?? 0n;
    total += BigInt(whole === '' ? '0' : whole) * scale;
    if (fraction !== '') total += (BigInt(fraction) * scale) / 10n ** BigInt(fraction.length);
  }
  return total;
}

function decimal(value: bigint, unit: bigint): string {
  const digits = String(unit).length - 1;
  const fraction = String(value % unit)
    .padStart(digits, '0')
    .replace(/0+$/u, '');
  return fraction === '' ? String(value / unit) : `${value / unit}.${fraction}`;
}

function invalid(text: string): SkepError {
  return new SkepError('usage/invalid-value', {
    message: `"${text}" is not a duration`,
    hint: 'write a number and a unit, for example 30s, 2m30s or 500ms',
  });
}

const RFC3339 = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?(?:[Zz]|([+-])(\d\d):(\d\d))$/;

/**
 * A moment in UTC as `YYYY-MM-DDTHH:MM:SS[.fraction]`, without trailing zeros, so that comparing two of them as plain
 * strings compares the moments with every digit the sender gave (milliseconds would lose the order of close updates).
 */
export type Instant = string & { readonly __instant: never };

/** Stands in for a moment that nobody knows. */
export const EPOCH = '1970-01-01T00:00:00' as Instant;

/** Reads a date-time (RFC 3339 §5.6); undefined for anything else, including impossible dates and bare dates. */
export function parseInstant(text: string): Instant | undefined {
  const match = RFC3339.exec(text);
  if (match === null) return undefined;
  const [, year, month, day, hour, minute, second, fraction = '', sign, offsetHour, offsetMinute] = match;
  const local = Date.UTC(0, Number(month) - 1, Number(day), Number(hour), Number(minute), 0);
  const date = new Date(local);
  // Date.UTC reads years 0–99 as 1900–1999, so the year is set apart.
  date.setUTCFullYear(Number(year), Number(month) - 1, Number(day));
  if (date.getUTCMonth() + 1 !== Number(month) || date.getUTCDate() !== Number(day)) return undefined;
  if (Number(hour) > 23 || Number(minute) > 59 || Number(second) > 60) return undefined;
  if (Number(offsetHour ?? 0) > 23 || Number(offsetMinute ?? 0) > 59) return undefined;
  const offset = (Number(offsetHour ?? 0) * 60 + Number(offsetMinute ?? 0)) * (sign === '-' ? -1 : 1);
  const utc = new Date(date.getTime() - offset * 60_000);
  if (utc.getUTCFullYear() < 0 || utc.getUTCFullYear() > 9999) return undefined;
  // From the first of the last zeros only: looked for from each of them, a long fraction would take time by its square.
  const digits = fraction.replace(/(?<!0)0+$/, '');
  return `${utc.toISOString().slice(0, 17)}${second}${digits === '' ? '' : `.${digits}`}` as Instant;
}

import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Does the same to several workloads at once; afterwards fails with the first failure, naming how many there were. */
export async function eachOf(
  names: readonly string[],
  action: (name: string) => Promise<void>,
): Promise<void> {
  const results = await Promise.allSettled(names.map(action));
  const failures = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason as unknown] : [],
  );
  const [first] = failures;
  if (first === undefined) return;
  if (failures.length === 1 || !(first instanceof SkepError)) throw first;
  throw new SkepError(first.code, {
    message: `${failures.length} of ${names.length} failed; the first: ${first.message}`,
    hint: first.hint,
    detail: { failures: failures.map((one) => (one instanceof SkepError ? one.message : 'internal error')) },
  });
}

/** The system's name (`ENOENT`) of a failed file or socket call; undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

/** What comes of a file call; undefined where the file is not there (`ENOENT`, or one of `also`). */
export async function ifThere<T>(call: Promise<T>, ...also: readonly string[]): Promise<T | undefined> {
  try {
    return await call;
  } catch (error) {
    if (['ENOENT', ...also].includes(errnoOf(error) ?? '')) return undefined;
    throw error;
  }
}

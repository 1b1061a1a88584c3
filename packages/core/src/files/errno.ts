/** The system's error name (`ENOENT`, `EACCES`) of a failed file or socket call; undefined for other errors. */
export function errnoOf(error: unknown): string | undefined {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : undefined;
}

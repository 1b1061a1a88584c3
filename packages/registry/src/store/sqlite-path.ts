/** Path that keeps everything in memory only: nothing is written, and a restart begins empty. */
export const IN_MEMORY = ':memory:';

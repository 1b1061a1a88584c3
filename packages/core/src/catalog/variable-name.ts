/** What may name an environment variable of a server (POSIX.1-2024 §8.1, with lower case as servers use it). */
export const VARIABLE_NAME = /^[A-Za-z_][A-Za-z0-9_]*$/;

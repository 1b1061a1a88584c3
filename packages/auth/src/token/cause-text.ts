/** The messages along the causes of a failure, for a log; what else causes carry, such as bodies of answers, stays out. */
export function causeText(error: unknown): string {
  const messages: string[] = [];
  for (let cause = error; cause instanceof Error && messages.length < 8; cause = cause.cause) {
    messages.push(cause.message);
  }
  return messages.join(': ');
}

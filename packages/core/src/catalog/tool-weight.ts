/** Models differ; a token of JSON is about four characters for all of them. */
const CHARACTERS_PER_TOKEN = 4;

/** What a client hands to a model of one tool. */
export interface ToolDefinition {
  readonly name: string;
  readonly description?: unknown;
  readonly inputSchema?: unknown;
}

/** About how many tokens of a model's context a tool takes: an estimate, four characters of its JSON each. */
export function tokensOfTool({ name, description, inputSchema }: ToolDefinition): number {
  return Math.ceil(JSON.stringify({ name, description, inputSchema }).length / CHARACTERS_PER_TOKEN);
}

/** `~850 tokens`, `~9.8 k tokens`, `~120 k tokens`. */
export function tokensText(tokens: number): string {
  if (tokens < 1000) return `~${tokens} tokens`;
  const thousands = tokens / 1000;
  return `~${thousands < 99.95 ? thousands.toFixed(1) : Math.round(thousands)} k tokens`;
}

/**
 * Has zod interpret its schemas: a command reads few documents, each once, and compiling a parser for each kind takes
 * longer than it saves, even for a catalogue of 10,000 entries. Zod reads this when its first schema is made.
 */
export function interpretSchemas(global: object): void {
  Object.assign(global, { __zod_globalConfig: { jitless: true } });
}

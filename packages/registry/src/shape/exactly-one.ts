/** Says in JSON Schema that an object holds exactly one of these members. */
export function exactlyOne(members: readonly string[]) {
  return { oneOf: members.map((member) => ({ required: [member] })) };
}

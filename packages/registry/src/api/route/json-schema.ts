/** The few shapes that the components of the OpenAPI document are made of, in JSON Schema 2020-12. */
export const text = { type: 'string' };
export const time = { type: 'string', format: 'date-time' };
export const ref = (name: string): object => ({ $ref: `#/components/schemas/${name}` });
export const list = (items: object): object => ({ type: 'array', items });

/** Open: members nobody knows pass through. All members are required unless `required` lists them. */
export function object(
  properties: Readonly<Record<string, object>>,
  required = Object.keys(properties),
): object {
  return { type: 'object', properties, ...(required.length === 0 ? {} : { required }) };
}

/** As `object`, for bodies in which a member that nobody knows is refused. */
export function closedObject(...members: Parameters<typeof object>): object {
  return { ...object(...members), additionalProperties: false };
}

/** Holds exactly one of these members. */
export function exactlyOne(...members: readonly string[]): object {
  return { oneOf: members.map((member) => ({ required: [member] })) };
}

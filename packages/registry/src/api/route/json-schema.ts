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

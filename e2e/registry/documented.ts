import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import type { Received } from './send.ts';

// What a served OpenAPI document says, as far as answers can be held against it.

interface Referring {
  readonly $ref?: string;
}

interface Content {
  readonly content?: { readonly 'application/json': { readonly schema: Referring } };
}

interface Header extends Referring {
  readonly required?: boolean;
  readonly schema?: object;
}

interface Response extends Content {
  readonly description: string;
  readonly headers?: Readonly<Record<string, Header>>;
}

interface Operation {
  readonly operationId: string;
  readonly requestBody?: Content;
  readonly parameters: readonly { readonly name: string; readonly in: 'path' | 'query' }[];
  readonly responses: Readonly<Record<string, Response>>;
}

interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: {
    readonly schemas: Readonly<Record<string, object>>;
    readonly headers: Readonly<Record<string, Header>>;
  };
}

export interface DocumentedOperation extends Operation {
  readonly method: string;
  readonly path: string;
  /** The operation id without the number of the path form. */
  readonly name: string;
}

/** Documents of publishers, whose members nobody can list. */
const OPEN = new Set(['Server', 'Bundle', 'Skill', 'Plugin', 'PublishedBundle', 'OfficialMeta', 'OpenApi']);

const FORMATS = {
  'date-time': /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)$/,
  uri: (text: string) => URL.canParse(text),
  uuid: /^[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}$/,
};

export class Documented {
  readonly operations: readonly DocumentedOperation[];
  readonly #document: Document;
  readonly #ajv = new Ajv2020({ allErrors: true, formats: FORMATS });
  readonly #validators = new Map<string, ValidateFunction>();

  /** `text`: the document as served. Fails when a schema is none. */
  constructor(text: string) {
    const document: Document = JSON.parse(text);
    this.#document = document;
    this.operations = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.entries(methods).map(([method, operation]) => ({
        ...operation,
        method: method.toUpperCase(),
        path,
        name: operation.operationId.replace(/\d+$/, ''),
      })),
    );
    const schemas = Object.entries(document.components.schemas);
    const closed = schemas.map(([name, schema]) => [name, OPEN.has(name) ? schema : closedObjects(schema)]);
    this.#ajv.addVocabulary(['components']);
    this.#ajv.addSchema({ $id: 'document', components: { schemas: Object.fromEntries(closed) } });
  }

  /** What an answer has that is not documented, or lacks; empty where there is nothing to say. */
  faults(operation: DocumentedOperation, { status, headers, text }: Received): string[] {
    const response = operation.responses[String(status)];
    if (response === undefined) return [`is not documented: ${text.slice(0, 200)}`];
    const missing = Object.entries(response.headers ?? {}).flatMap(([name, referring]) => {
      const { required, schema } = this.#header(referring);
      const value = headers[name.toLowerCase()];
      if (value === undefined) return required === true ? [`lacks the header ${name}`] : [];
      return this.#ajv.validate(schema ?? {}, value) ? [] : [`${name} is ${String(value)}`];
    });
    return [...missing, ...this.#bodyFaults(response, headers['content-type'], text)];
  }

  /** Whether a request body is one that the operation documents. */
  requestFaults({ operationId, requestBody }: DocumentedOperation, body: unknown): string[] {
    if (requestBody === undefined) return [`${operationId} documents no body`];
    return this.#bodyFaults(requestBody, 'application/json', JSON.stringify(body));
  }

  #header({ $ref, ...header }: Header): Header {
    if ($ref === undefined) return header;
    const named = this.#document.components.headers[$ref.split('/').at(-1) ?? ''];
    if (named === undefined) throw new Error(`the document has no ${$ref}`);
    return named;
  }

  #bodyFaults({ content }: Content, type: unknown, text: string): string[] {
    if (content === undefined) return text === '' ? [] : ['it has a body, and none is documented'];
    const { $ref = '' } = content['application/json'].schema;
    if (!/^application\/json(?:;|$)/.test(String(type))) return [`its type is ${String(type)}`];
    const validate = this.#validators.get($ref) ?? this.#ajv.compile({ $ref: `document${$ref}` });
    this.#validators.set($ref, validate);
    if (validate(JSON.parse(text))) return [];
    return (validate.errors ?? []).map(
      ({ instancePath, message, params }) => `${$ref}${instancePath} ${message} ${JSON.stringify(params)}`,
    );
  }
}

/** The schema with every object that lists its members closed, so that a member nobody documented is a fault. */
function closedObjects(schema: unknown): unknown {
  if (Array.isArray(schema)) return schema.map(closedObjects);
  if (typeof schema !== 'object' || schema === null) return schema;
  const closed = Object.fromEntries(
    Object.entries(schema).map(([key, value]) => [key, closedObjects(value)]),
  );
  const properties: unknown = Reflect.get(schema, 'properties');
  const listed = typeof properties === 'object' && properties !== null && Object.keys(properties).length > 0;
  return listed ? { ...closed, additionalProperties: false } : closed;
}

import { z } from 'zod';
import { faultLine } from './checked-text.ts';

/**
 * The official schema of a server document to the letter (`SERVER_SCHEMA_URL`), for publishers. Readers take more, see
 * server-json.ts. As there, members that nobody knows are fine.
 */
const text = z.string();
/** Characters as JSON Schema counts them, which are not those of JavaScript. */
const sized = (min: number, max: number) =>
  text.refine(
    (value) => isWithin(Array.from(value).length, min, max),
    `must have ${min} to ${max} characters`,
  );
const uri = text.refine(isUri, 'must be an absolute URI');

function isWithin(count: number, min: number, max: number): boolean {
  return count >= min && count <= max;
}

/** The characters of RFC 3986, and an authority that can be reached. */
function isUri(value: string): boolean {
  return (
    /^[a-z][a-z0-9+.-]*:(?:[\w.~:/?#[\]@!$&'()*+,;=-]|%[0-9a-f]{2})+$/iu.test(value) && URL.canParse(value)
  );
}

const inputShape = {
  description: text.optional(),
  format: z.enum(['string', 'number', 'boolean', 'filepath']).optional(),
  isRequired: z.boolean().optional(),
  isSecret: z.boolean().optional(),
  default: text.optional(),
  placeholder: text.optional(),
  value: text.optional(),
  choices: z.array(text).optional(),
};
const variables = z.record(text, z.looseObject(inputShape)).optional();
const keyValueInput = z.looseObject({ ...inputShape, variables, name: text });

const argument = z.discriminatedUnion('type', [
  z
    .looseObject({
      ...inputShape,
      variables,
      type: z.literal('positional'),
      valueHint: text.optional(),
      isRepeated: z.boolean().optional(),
    })
    .refine(({ value, valueHint }) => value !== undefined || valueHint !== undefined, {
      message: 'needs value or valueHint',
    }),
  z.looseObject({
    ...inputShape,
    variables,
    type: z.literal('named'),
    name: text,
    isRepeated: z.boolean().optional(),
  }),
]);

const httpShape = {
  url: text.regex(/^https?:\/\/[^\s]+$/u, 'must be an http or https URL'),
  headers: z.array(keyValueInput).optional(),
};
const overHttp = z.looseObject({ ...httpShape, type: z.literal('streamable-http') });
const overSse = z.looseObject({ ...httpShape, type: z.literal('sse') });
const localTransport = z.discriminatedUnion('type', [
  z.looseObject({ type: z.literal('stdio') }),
  overHttp,
  overSse,
]);
const remote = z.discriminatedUnion('type', [overHttp.extend({ variables }), overSse.extend({ variables })]);

const packageEntry = z.looseObject({
  registryType: text,
  identifier: text,
  transport: localTransport,
  version: text
    .min(1, 'must not be empty')
    .refine((value) => value !== 'latest', 'must be one version, not the word "latest"')
    .optional(),
  registryBaseUrl: uri.optional(),
  fileSha256: text.regex(/^[a-f0-9]{64}$/u, 'must be 64 hexadecimal digits in lower case').optional(),
  runtimeHint: text.optional(),
  runtimeArguments: z.array(argument).optional(),
  packageArguments: z.array(argument).optional(),
  environmentVariables: z.array(keyValueInput).optional(),
});

const icon = z.looseObject({
  src: uri.refine((value) => Array.from(value).length <= 255, 'must have at most 255 characters'),
  mimeType: z.enum(['image/png', 'image/jpeg', 'image/jpg', 'image/svg+xml', 'image/webp']).optional(),
  sizes: z.array(text.regex(/^(\d+x\d+|any)$/u, 'must be like 48x48, or any')).optional(),
  theme: z.enum(['light', 'dark']).optional(),
});

const officialServer = z.looseObject({
  $schema: uri.optional(),
  name: sized(3, 200).regex(
    /^[a-zA-Z0-9.-]+\/[a-zA-Z0-9._-]+$/u,
    'must be namespace/name, like io.github.you/weather',
  ),
  description: sized(1, 100),
  version: sized(0, 255),
  title: sized(1, 100).optional(),
  websiteUrl: uri.optional(),
  repository: z
    .looseObject({ url: uri, source: text, id: text.optional(), subfolder: text.optional() })
    .optional(),
  icons: z.array(icon).optional(),
  packages: z.array(packageEntry).optional(),
  remotes: z.array(remote).optional(),
  _meta: z
    .looseObject({ 'io.modelcontextprotocol.registry/publisher-provided': z.looseObject({}).optional() })
    .optional(),
});

/** Everything that the official schema finds wrong with a document, each with its place; none where it is valid. */
export function officialFaults(document: unknown): readonly string[] {
  const issues = officialServer.safeParse(document).error?.issues ?? [];
  return issues.map((issue) => faultLine(new z.ZodError([issue])));
}

import { z } from 'zod';
import { checkedText } from './checked-text.ts';
import { serverNameFault, versionFault } from './entry-name.ts';

/**
 * The official MCP server document (`server.json`, schema 2025-12-11), decoded leniently: unknown members stay, null
 * counts as absent, and only what Skep relies on is checked. About one in ten entries of the official registry breaks
 * the strict schema (mostly `repository: {}`); they load. Documents are served from their own text, never from this
 * decoded view.
 */
export const SERVER_SCHEMA_URL =
  'https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json';

const text = z.string();
const optionalText = text.nullish();
const optionalFlag = z.boolean().nullish();

const inputShape = {
  description: optionalText,
  /** `string`, `number`, `boolean` or `filepath`. */
  format: optionalText,
  isRequired: optionalFlag,
  isSecret: optionalFlag,
  default: optionalText,
  placeholder: optionalText,
  /** Fixed by the publisher; `{name}` is replaced from `variables`. */
  value: optionalText,
  choices: z.array(text).nullish(),
};

const input = z.looseObject(inputShape);
const variables = z.record(text, input).nullish();

const keyValueInput = z.looseObject({ ...inputShape, variables, name: text });

const argument = z.looseObject({
  ...inputShape,
  variables,
  /** `positional` or `named`; real entries also have an empty or missing type, which reads as positional. */
  type: optionalText,
  name: optionalText,
  valueHint: optionalText,
  isRepeated: optionalFlag,
});

const transport = z.looseObject({
  /** `stdio`, `sse` or `streamable-http`. */
  type: text,
  url: optionalText,
  headers: z.array(keyValueInput).nullish(),
  variables,
});

const packageEntry = z.looseObject({
  /** `npm`, `pypi`, `oci`, `nuget`, `mcpb` or another kind. */
  registryType: text,
  identifier: text.min(1, 'the identifier is empty'),
  version: optionalText,
  registryBaseUrl: optionalText,
  fileSha256: optionalText,
  runtimeHint: optionalText,
  transport: transport.nullish(),
  runtimeArguments: z.array(argument).nullish(),
  packageArguments: z.array(argument).nullish(),
  environmentVariables: z.array(keyValueInput).nullish(),
});

const remote = transport.extend({ url: text.min(1, 'the URL is empty') });

const repository = z.looseObject({
  url: optionalText,
  source: optionalText,
  id: optionalText,
  subfolder: optionalText,
});

/** Decodes one server document; the error lists every member that is wrong. */
export const serverDocument = z.looseObject({
  $schema: optionalText,
  name: checkedText(serverNameFault),
  version: checkedText(versionFault),
  /** Must be there; real entries also have an empty one. */
  description: text,
  title: optionalText,
  websiteUrl: optionalText,
  repository: repository.nullish(),
  packages: z.array(packageEntry).nullish(),
  remotes: z.array(remote).nullish(),
  _meta: z.record(text, z.unknown()).nullish(),
});

export type ServerDocument = z.infer<typeof serverDocument>;
export type ServerPackage = z.infer<typeof packageEntry>;
export type ServerRemote = z.infer<typeof remote>;
/** A value somebody gives: an environment variable or header has a name, a template variable only its key. */
export type ServerInput = z.infer<typeof input>;
export type ServerArgument = z.infer<typeof argument>;

import { MAX_SERVER_NAME, serverNameFault, versionFault } from '@skep/core/catalog/entry-name.ts';
import { badRequest, type Parameter, WORD } from './parameter.ts';

/** A path segment's text: not empty, no white space, nothing that a database refuses in a text. */
export function segment(name: string, text: string | undefined): string {
  if (text === undefined || text.trim() === '') throw badRequest(`${name} cannot be empty`);
  if (/\s/.test(text)) throw badRequest(`${name} cannot contain whitespace`);
  if (/\p{Cc}/u.test(text)) throw badRequest(`${name} cannot contain control characters`);
  return text;
}

export const registryName: Parameter<string> = {
  description: 'Name of a registry',
  schema: WORD,
  parse: (text) => segment('registry', text),
};

/** `namespace/name`, its slash percent-encoded, or a bare name. */
export const serverName: Parameter<string> = {
  description: 'Name of a server: `namespace%2Fname`, or `namespace/name` as two segments, or a bare name',
  schema: { ...WORD, maxLength: MAX_SERVER_NAME },
  parse: (text) => {
    const name = segment('serverName', text);
    const fault = serverNameFault(name);
    if (fault !== undefined) throw badRequest(`invalid server name format: ${fault}`);
    return name;
  },
};

/** Part of the name of a skill or plugin. */
export const namespaceName: Parameter<string> = {
  description: 'Namespace, in reverse DNS form',
  schema: WORD,
  parse: (text) => segment('namespace', text),
};

/** Part of the name of a skill or plugin. */
export const bundleName: Parameter<string> = {
  description: 'Name within the namespace',
  schema: WORD,
  parse: (text) => segment('name', text),
};

export const versionName: Parameter<string> = {
  description: 'An exact version string, or `latest`',
  schema: WORD,
  parse: (text) => {
    const version = segment('version', text);
    const fault = version === 'latest' ? undefined : versionFault(version);
    if (fault !== undefined) throw badRequest(`invalid version: ${fault}`);
    return version;
  },
};

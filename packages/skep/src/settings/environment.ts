import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import { settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { CONFINED_USER } from '../permissions/confined-user-name.ts';

const isVariableName = (name: string): boolean => VARIABLE_NAME.test(name);

/** What the server gets and may do. */
export const environmentSettings = settingsOf('Environment, storage and permissions', [
  {
    kind: 'list',
    flag: 'env',
    short: 'e',
    key: 'env_vars',
    stored: shape.orEmpty(shape.recordOf(shape.noNul, isVariableName), {}),
    brief: 'Variable of the server; KEY alone takes your own value; repeatable',
    placeholder: 'KEY[=VALUE]',
  },
  {
    kind: 'path',
    flag: 'env-file',
    brief: 'Read environment variables from a file',
    placeholder: 'file',
  },
  {
    kind: 'path',
    flag: 'env-file-dir',
    key: 'env_file_dir',
    brief: 'Read environment variables from all files of a directory',
    placeholder: 'dir',
    notYet: true,
  },
  {
    kind: 'list',
    flag: 'secret',
    key: 'secrets',
    brief: 'Environment variable from the secrets manager; repeatable',
    placeholder: 'NAME,target=TARGET',
    notYet: true,
  },
  {
    kind: 'list',
    flag: 'volume',
    short: 'v',
    key: 'volumes',
    stored: shape.orEmpty(shape.listOf(shape.text), []),
    brief: 'Mount a path of the host; repeatable',
    placeholder: 'host-path:container-path[:ro]',
  },
  {
    kind: 'bool',
    flag: 'ignore-globally',
    key: 'ignore_config.load_global',
    stored: shape.withDefault(shape.bool, true),
    brief: 'Respect ~/.config/skep/skepignore: no mounts while it names something',
    default: true,
  },
  {
    kind: 'bool',
    flag: 'print-resolved-overlays',
    key: 'ignore_config.print_overlays',
    harmless: true,
    brief: 'Print the container paths that ignore patterns hide',
    default: false,
    notYet: true,
  },
  {
    kind: 'string',
    flag: 'permission-profile',
    key: 'permission_profile_name_or_path',
    stored: shape.optional(shape.text),
    brief: 'What the server may do: none, network or a JSON file',
    placeholder: 'profile',
    defaultText: "the catalogue's profile, else network",
  },
  {
    kind: 'string',
    flag: 'sandbox-user',
    key: 'sandbox_user',
    stored: shape.optional(shape.textThat((user) => CONFINED_USER.test(user), 'is not root, UID or UID:GID')),
    brief: 'User that the server is in the sandbox; root only when named here',
    placeholder: 'root|uid[:gid]',
    defaultText: 'the owner of what it may write, or nobody else, never root',
  },
  {
    kind: 'choice',
    flag: 'image-verification',
    placeholder: 'mode',
    brief: 'What to do about images without a verified origin',
    choices: ['warn', 'enabled', 'disabled'],
    notYetValues: ['enabled'],
    default: 'warn',
  },
]);

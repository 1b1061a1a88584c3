import { VARIABLE_NAME } from '@skep/core/catalog/variable-name.ts';
import { flag, settingsOf } from '@skep/core/settings/define-settings.ts';
import * as shape from '@skep/core/settings/shape.ts';
import { CONFINED_USER } from '../permissions/confined-user-name.ts';
import { isReference } from '../secrets/reference.ts';

const isVariableName = (name: string): boolean => VARIABLE_NAME.test(name);

/** What the server gets and may do. */
export const environmentSettings = settingsOf({ group: 'Environment, storage and permissions' }, [
  flag('list', 'env', 'Variable of the server; KEY alone takes your own value; repeatable', {
    short: 'e',
    key: 'env_vars',
    stored: shape.orEmpty(shape.recordOf(shape.noNul, isVariableName), {}),
    placeholder: 'KEY[=VALUE]',
  }),
  flag('path', 'env-file', 'Read environment variables from a file', { placeholder: 'file' }),
  flag('path', 'env-file-dir', 'Read environment variables from all files of a directory', {
    placeholder: 'dir',
  }),
  flag('list', 'secret', 'Variable of the server from the secrets store; repeatable', {
    key: 'secrets',
    stored: shape.optional(shape.listOf(shape.textThat(isReference, 'is not NAME,target=VARIABLE'))),
    placeholder: 'NAME,target=TARGET',
  }),
  flag('list', 'volume', 'Mount a path of the host, or volume://NAME that servers share; repeatable', {
    short: 'v',
    key: 'volumes',
    stored: shape.orEmpty(shape.listOf(shape.text), []),
    placeholder: 'host-path:container-path[:ro]',
  }),
  flag('bool', 'ignore-globally', 'Hide from mounts what ~/.config/skep/skepignore names', {
    key: 'ignore_config.load_global',
    stored: shape.withDefault(shape.bool, true),
    default: true,
  }),
  flag('bool', 'print-resolved-overlays', 'Print the container paths that ignore patterns hide', {
    key: 'ignore_config.print_overlays',
    stored: shape.optional(shape.bool),
    default: false,
  }),
  flag('string', 'permission-profile', 'What the server may do: none, network or a JSON file', {
    key: 'permission_profile_name_or_path',
    stored: shape.optional(shape.text),
    placeholder: 'profile',
    // Or a file, which a shell completes by itself.
    offers: ['none', 'network'],
    defaultText: "the catalogue's profile, else network",
  }),
  flag('string', 'sandbox-user', 'User that the server is; in the sandbox root only when named here', {
    key: 'sandbox_user',
    stored: shape.optional(shape.textThat((user) => CONFINED_USER.test(user), 'is not root, UID or UID:GID')),
    placeholder: 'root|uid[:gid]',
    defaultText:
      'the owner of what it may write, or nobody else; in a container its image’s where it needs that',
  }),
  flag('choice', 'image-verification', 'What to do about images without a verified origin', {
    placeholder: 'mode',
    choices: ['warn', 'enabled', 'disabled'],
    default: 'warn',
  }),
]);

import { SkepError } from '@skep/core/errors/skep-error.ts';

/** Which state of a repository is read. */
export type GitRef =
  | { readonly kind: 'default' }
  | { readonly kind: 'branch'; readonly name: string }
  | { readonly kind: 'tag'; readonly name: string }
  /** All 40 (SHA-1) or 64 (SHA-256) hexadecimal digits. */
  | { readonly kind: 'commit'; readonly id: string };

/** The keys of a source's configuration, at most one of them set. */
export interface GitRefKeys {
  readonly branch?: string | undefined;
  readonly tag?: string | undefined;
  readonly commit?: string | undefined;
}

/** Characters and sequences that git-check-ref-format(1) forbids, and a leading dash. */
const FORBIDDEN = /[\p{Cc} ~^:?*[\\]|\.\.|@\{|\/\/|^[-/.]|\/\.|[/.]$|\.lock(?:\/|$)|^@$/u;

/** Fails with `source/invalid-ref`: two keys at once, a name git does not admit, an abbreviated commit. */
export function refOf({ branch, tag, commit }: GitRefKeys): GitRef {
  const given = Object.entries({ branch, tag, commit }).filter(([, value]) => value !== undefined);
  if (given.length > 1) {
    throw new SkepError('source/invalid-ref', {
      message: `only one of branch, tag and commit may be given, not ${given.map(([key]) => key).join(' and ')}`,
      hint: 'keep one of them',
    });
  }
  if (branch !== undefined) return { kind: 'branch', name: checkedName('branch', branch) };
  if (tag !== undefined) return { kind: 'tag', name: checkedName('tag', tag) };
  return commit === undefined ? { kind: 'default' } : { kind: 'commit', id: checkedCommit(commit) };
}

/** For messages: `branch "main"`. */
export function describeRef(ref: GitRef): string {
  if (ref.kind === 'default') return 'the default branch';
  return ref.kind === 'commit' ? `commit "${ref.id}"` : `${ref.kind} "${ref.name}"`;
}

function checkedName(kind: string, name: string): string {
  if (name !== '' && !FORBIDDEN.test(name)) return name;
  throw new SkepError('source/invalid-ref', { message: `"${name}" is not a name of a ${kind}` });
}

function checkedCommit(commit: string): string {
  if (/^(?:[0-9a-f]{40}|[0-9a-f]{64})$/iu.test(commit)) return commit.toLowerCase();
  // No server looks one up, and whoever may push there could make another one that begins alike.
  const isShort = /^[0-9a-f]{4,63}$/iu.test(commit);
  throw new SkepError('source/invalid-ref', {
    message: isShort
      ? `commit "${commit}" is abbreviated; give all 40 digits, which "git rev-parse ${commit}" prints`
      : `"${commit}" is not a commit; give all 40 hexadecimal digits`,
  });
}

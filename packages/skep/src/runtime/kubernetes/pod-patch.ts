import { SkepError } from '@skep/core/errors/skep-error.ts';
import { isRecord } from '@skep/core/json/is-record.ts';
import { judge } from '@skep/core/json/judge.ts';
import { parseJson } from '@skep/core/json/parsed-json.ts';

type Members = Readonly<Record<string, unknown>>;

/** A part of a pod template as somebody wrote it. Fails with `runtime/invalid-workload`. */
export function readPodPatch(text: string): Members {
  const value: unknown = judge(text, 100) === 'json' ? parseJson(text) : undefined;
  const parts = isRecord(value) ? value : {};
  const wrong = Object.keys(parts).find(
    (key) => !['metadata', 'spec'].includes(key) || !isRecord(parts[key]),
  );
  if (isRecord(value) && wrong === undefined) return value;
  throw new SkepError('runtime/invalid-workload', {
    message: 'k8s_pod_template_patch is no JSON object of "metadata" and "spec"',
    hint: 'write a part of a pod template, such as {"spec":{"nodeSelector":{"disk":"ssd"}}}',
  });
}

/**
 * A template with a patch merged into it: members of objects one by one, items of lists that have a `name` by that name, as
 * kubectl merges containers and volumes; other lists are replaced, and null takes a member away (RFC 7396).
 */
export function patched(template: Members, patch: Members): Members {
  const merged = new Map(Object.entries(template));
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergedValue(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}

function mergedValue(before: unknown, value: unknown): unknown {
  if (isRecord(value)) return patched(isRecord(before) ? before : {}, value);
  if (!isNamedList(before) || !isNamedList(value)) return value;
  const items = new Map(before.map((item) => [item['name'], item]));
  for (const item of value) items.set(item['name'], patched(items.get(item['name']) ?? {}, item));
  return [...items.values()];
}

function isNamedList(value: unknown): value is readonly Members[] {
  return Array.isArray(value) && value.every((item) => isRecord(item) && typeof item['name'] === 'string');
}

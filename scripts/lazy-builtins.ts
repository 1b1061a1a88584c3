import type { Plugin } from 'rolldown';

const LAZY = new Set(
  [
    'child_process',
    'crypto',
    'dns',
    'fs',
    'fs/promises',
    'http',
    'https',
    'net',
    'os',
    'path',
    'readline',
    'timers/promises',
    'tls',
    'tty',
    'util',
    'v8',
    'vm',
    'zlib',
  ].map((name) => `node:${name}`),
);

/**
 * A built-in module is loaded when something of it is first called, not when the program starts: node:crypto alone costs
 * as much as all of `skep list` (4 ms). `import` moreover looks at every export, and those of node:http and node:fs that
 * are getters load all of fetch (40 ms, 10 MB) and of streams.
 */
export const lazyBuiltins: Plugin = {
  name: 'lazy-builtins',
  resolveId: (id, importer, { kind }) =>
    LAZY.has(id) && kind === 'import-statement' && !importer?.includes('/node_modules/')
      ? `\0${id}`
      : undefined,
  load: (id) => {
    const [, name] = /^\0(node:.*)$/.exec(id) ?? [];
    if (name === undefined) return undefined;
    const members = Object.entries(Object.getOwnPropertyDescriptors(process.getBuiltinModule(name) ?? {}));
    const exports = members
      .filter(([key, member]) => !('get' in member) && /^[A-Za-z]\w*$/.test(key) && key !== 'default')
      .map(([key, { value }]) => `export const ${key} = ${lazily(key, value)};`);
    const head = [
      `let builtin;`,
      `const load = () => (builtin ??= process.getBuiltinModule('${name}'));`,
      `export default /* @__PURE__ */ load();`,
    ];
    return { code: [...head, ...exports].join('\n'), moduleSideEffects: false };
  },
};

/** A class, or a function that carries something as `execFile` does for `promisify`, is stood in for by a proxy. */
function lazily(key: string, value: unknown): string {
  if (typeof value !== 'function') return `/* @__PURE__ */ (() => load().${key})()`;
  const own = new Set<PropertyKey>(['length', 'name', 'prototype', 'arguments', 'caller']);
  const isPlain = /^[a-z]/.test(key) && Reflect.ownKeys(value).every((one) => own.has(one));
  if (isPlain) return `(...args) => load().${key}(...args)`;
  return `/* @__PURE__ */ new Proxy(function () {}, {
    get: (_, member) => load().${key}[member],
    apply: (_, self, args) => Reflect.apply(load().${key}, self, args),
    construct: (_, args, made) => Reflect.construct(load().${key}, args, made),
  })`;
}

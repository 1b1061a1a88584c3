import { Script } from 'node:vm';
import { describe, expect, test } from 'vitest';
import { asCommonJs } from './as-common-js.ts';

test.each([
  ['import{a as b,c}from"./x.js";b(c);', 'const {a:b,c:c}=require("./x.js");b(c);'],
  ['import d,{e}from"./x.js";d(e);', 'const {default:d,e:e}=require("./x.js");d(e);'],
  ['import fs,{sep}from"path";fs(sep);', 'const fs=require("path"),{sep:sep}=require("path");fs(sep);'],
  ['import{default as fs}from"node:fs";fs();', 'const fs=require("node:fs");fs();'],
  ['import*as all from"./x.js";all.a();', 'const all=require("./x.js");all.a();'],
  ['a();import"./x.js";', 'require("./x.js");a();'],
  ['export{a as x,b};let a=1,b=2;a=3', 'let a=1,b=2;a=3;exports.x=a;exports.b=b;'],
  ['export{};', ''],
  ['export default f();let f=()=>1;', 'let f=()=>1;;exports.default=f();'],
  ['let a=()=>import("./x.js");', 'let a=()=>Promise.resolve().then(()=>require("./x.js"));'],
  [
    'let é=`import("./x.js")`;import(`./é.js`);',
    'let é=`import("./x.js")`;Promise.resolve().then(()=>require(`./é.js`));',
  ],
  [
    'let a=[import.meta.url,import.meta.dirname,import.meta.filename];',
    'let a=[require("node:url").pathToFileURL(__filename).href,__dirname,__filename];',
  ],
  // What Node itself has, what a package of its own may be, and what is not known here, Node looks for.
  [
    'import("http");import("@scope/other");import(name);',
    'import("http");import("@scope/other");import(name);',
  ],
])('%s', (code, expected) => expect(asCommonJs(code)).toBe(expected));

test.each([
  'export let a=1;',
  'export default function f(){}',
  'export*from"./x.js";',
  'export{a}from"./x.js";',
  'let a;export{a as "b-c"};',
  'import{"b-c" as a}from"./x.js";',
])('%s is nothing that rolldown writes, and refused', (code) =>
  expect(() => asCommonJs(code)).toThrow(/^a chunk /),
);

test('it runs as the module did', () => {
  const code = 'import path,{sep}from"node:path";let parts=text=>text.split(sep).map(one=>path.basename(one));export{parts as p};'; // prettier-ignore
  const module = { exports: {} as Record<string, (text: string) => readonly string[]> };
  const run = new Script(`(function(exports,require){${asCommonJs(code)}})`).runInThisContext() as (
    exports: object,
    require: (id: string) => unknown,
  ) => void;
  run(module.exports, (id) => process.getBuiltinModule(id));
  expect(module.exports['p']?.('a/b')).toEqual(['a', 'b']);
});

describe('what is exported and changes once its chunk has run is refused', () => {
  test.each([
    'let a;function f(){a=1}export{a};',
    'let a=0;let f=()=>a++;export{a};',
    'let a;let f=()=>{[{b:a=2}]=[]};export{a};',
    'let a;let f=()=>{for(a of [])f(a)};export{a};',
    'let a;let f=(b=a)=>{a=b};export{a};',
    'let a;let f=({a:b})=>{a=b};export{a};',
    'let a;class C{m(){a=1}}export{a};',
    'let a=0;class C{x=(a=1)}export{a};',
    'let a=0;function f(){{let a=2;f(a)}a=3}export{a};',
    'let a=0;let f=()=>{for(let a of[]);a=1};export{a};',
  ])('%s', (code) =>
    expect(() => asCommonJs(code)).toThrow('"a" is exported, and something is assigned to it later'),
  );
});

describe('what only has the same name is not', () => {
  test.each([
    'let a;a=1;export{a};',
    'var a;(function(a){a.b=1})(a||={});export{a};',
    'let a=1;function f(a){a=2}export{a};',
    'let a=1;let f=()=>{for(let a=0;a<1;a++)f(a)};export{a};',
    'let a=1;function f(){let{b:a}={};return()=>{a=2}}export{a};',
    'let a=1;let f=()=>{try{}catch(a){a=2}};export{a};',
    'let a={};let f=()=>{a.b=1};export{a};',
    'let a=1;function f(){{var a}a=2}export{a};',
    'let a=1;function f(){{let a;{a=2}}}export{a};',
    'let a=1;let f=b=>{switch(b){case 1:let a;a=2}};export{a};',
    'let a=1;let f=()=>{for(let a of[])a=2};export{a};',
    'let a;let f=()=>{a=1};',
  ])('%s', (code) => expect(() => asCommonJs(code)).not.toThrow());
});

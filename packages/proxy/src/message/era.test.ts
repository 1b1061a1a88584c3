import { describe, expect, test } from 'vitest';
import { eraOf } from './era.ts';
import { readMessage } from './json-rpc.ts';

const KEY = 'io.modelcontextprotocol/';
const VERSION = { [`${KEY}protocolVersion`]: '2026-07-28' };
const FULL = { ...VERSION, [`${KEY}clientCapabilities`]: {} };
const HEADER = { 'mcp-protocol-version': '2026-07-28' };

const era = (headers: Record<string, string>, method: string, params: object) => {
  const message = readMessage(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
  if (typeof message === 'string') throw new TypeError(message);
  return eraOf(headers, message);
};

/** docs/behaviour/proxy.md#revisions, rule by rule. */
describe('the revision family of a POST', () => {
  test.each([
    ['1 initialize, whatever the header', HEADER, 'initialize', {}, 'legacy'],
    ['2 no signal', {}, 'tools/list', {}, 'legacy'],
    ['2 the log level alone', {}, 'tools/list', { _meta: { [`${KEY}logLevel`]: 'debug' } }, 'legacy'],
    [
      '3 a signal under a legacy header',
      { 'mcp-protocol-version': '2025-06-18' },
      'x',
      { _meta: { [`${KEY}clientInfo`]: {} } },
      'legacy',
    ],
    ['7 all there', { ...HEADER, 'mcp-method': 'tools/list' }, 'tools/list', { _meta: FULL }, 'modern'],
    ['7 the body alone', { 'mcp-method': 'tools/list' }, 'tools/list', { _meta: FULL }, 'modern'],
    [
      '7 named',
      { ...HEADER, 'mcp-method': 'tools/call', 'mcp-name': ' greet ' },
      'tools/call',
      { name: 'greet', _meta: FULL },
      'modern',
    ],
    [
      '7 named in base64',
      { ...HEADER, 'mcp-method': 'resources/read', 'mcp-name': '=?base64?w6k6eA==?=' },
      'resources/read',
      { uri: 'é:x', _meta: FULL },
      'modern',
    ],
  ])('%s', (...[, headers, method, params, expected]) => {
    expect(era(headers, method, params)).toEqual({ era: expected });
  });

  test.each([
    ['3 header without body', HEADER, {}, 'proxy/era-mismatch', { header: '2026-07-28', body: '' }],
    ['3 neither', {}, { _meta: { [`${KEY}clientInfo`]: {} } }, 'proxy/era-params', undefined],
    [
      '4 another version',
      HEADER,
      { _meta: { [`${KEY}protocolVersion`]: '2027-01-01' } },
      'proxy/era-version',
      { supported: ['2026-07-28'], requested: '2027-01-01' },
    ],
    [
      '5 header differs',
      { 'mcp-protocol-version': '2025-06-18' },
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: '2025-06-18', body: '2026-07-28' },
    ],
    ['6 no capabilities', HEADER, { _meta: VERSION }, 'proxy/era-capabilities', { requiredCapabilities: {} }],
    [
      '6 capabilities that are no object',
      HEADER,
      { _meta: { ...VERSION, [`${KEY}clientCapabilities`]: [] } },
      'proxy/era-capabilities',
      { requiredCapabilities: {} },
    ],
    [
      'method header missing',
      HEADER,
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: '', body: 'tools/call' },
    ],
    [
      'method header differs',
      { ...HEADER, 'mcp-method': 'tools/list' },
      { _meta: FULL },
      'proxy/era-mismatch',
      { header: 'tools/list', body: 'tools/call' },
    ],
    [
      'name header missing',
      { ...HEADER, 'mcp-method': 'tools/call' },
      { name: 'greet', _meta: FULL },
      'proxy/era-mismatch',
      { header: '', body: 'greet' },
    ],
    [
      'name header differs',
      { ...HEADER, 'mcp-method': 'tools/call', 'mcp-name': 'Greet' },
      { name: 'greet', _meta: FULL },
      'proxy/era-mismatch',
      { header: 'Greet', body: 'greet' },
    ],
  ])('%s is refused', (...[, headers, params, code, data]) => {
    expect(era(headers, 'tools/call', params)).toEqual(
      data === undefined ? { era: 'rejected', code } : { era: 'rejected', code, data },
    );
  });
});

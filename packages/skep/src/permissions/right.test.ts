import * as fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { parseRight, type Right } from './right.ts';

describe('a right', () => {
  test.each<[string, Right]>([
    ['API.example.com:443', { is: 'host', host: 'api.example.com', port: 443 }],
    ['api.example.com', { is: 'host', host: 'api.example.com' }],
    ['.example.com:8443', { is: 'host', host: '.example.com', port: 8443 }],
    ['10.0.0.5:5432', { is: 'host', host: '10.0.0.5', port: 5432 }],
    ['2001:db8::1', { is: 'host', host: '2001:db8::1' }],
    ['[2001:DB8:0::1]:80', { is: 'host', host: '2001:db8::1', port: 80 }],
    [':8443', { is: 'port', port: 8443 }],
    ['/srv/notes', { is: 'path', path: '/srv/notes', readOnly: undefined }],
    ['/srv/notes/:ro', { is: 'path', path: '/srv/notes', readOnly: true }],
    ['./notes:rw', { is: 'path', path: '/home/ann/notes', readOnly: false }],
    ['..', { is: 'path', path: '/home', readOnly: undefined }],
    ['../x', { is: 'path', path: '/home/x', readOnly: undefined }],
  ])('is %s', (text, right) => expect(parseRight(text, '/home/ann')).toEqual(right));

  test.each([
    ['', 'invalid value "": it is not a host name'],
    ['*.example.com:443', 'it is a wildcard; write ".example.com" for example.com and all below it'],
    ['https://x.com/a', 'it is an address of the web; write "x.com"'],
    ['notes/today', 'it is not a host name'],
    ['~/notes', 'it is not a host name'],
    ['api.example.com:0', 'ports are from 1 to 65535'],
    ['api.example.com:65536', 'ports are from 1 to 65535'],
    [':', 'it is not a host name'],
    ['api.example.com:http', 'it is not a host name'],
    ['a\u001B[31mb', 'invalid value "a�[31mb": it is not a host name'],
    ['10.0.0.0/8', 'it is a range of addresses; name each address'],
    ['/srv:/inside', 'a path has no colon'],
  ])('is not %j', (text, why) => {
    expect(() => parseRight(text, '/')).toThrow(expect.objectContaining({ code: 'usage/invalid-value' }));
    expect(() => parseRight(text, '/')).toThrow(why);
  });

  test.each(['/a;b', '/a$b', '/a\0b', '/a|b'])('is no path that cannot be mounted: %j', (text) => {
    expect(() => parseRight(text, '/')).toThrow(expect.objectContaining({ code: 'run/invalid-volume' }));
  });

  test('is read from any text or refused with a code', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.webAuthority(), fc.ipV6()), (text) => {
        try {
          parseRight(text, '/');
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^(?:usage|run)\/invalid-/) });
        }
      }),
    );
  });
});

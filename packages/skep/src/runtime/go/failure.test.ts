import { expect, test } from 'vitest';
import { goFailure } from './failure.ts';

test('Go is told short, without the packages that it was at, and without an address that nobody knows', () => {
  const output = `go: downloading h.test/x v1.0.0
internal/cpu
h.test/x/cmd
# h.test/x/cmd
main.go:3:1: syntax error
go: h.test/y@v1.0.0: reading http://127.0.0.1:3142/h.test/y/@v/v1.0.0.info: 404 Not Found
`;
  expect(goFailure('h.test/x@v1.0.0', output, 'http://127.0.0.1:3142/').message).toBe(
    'package "h.test/x@v1.0.0" could not be fetched: # h.test/x/cmd; main.go:3:1: syntax error; go: h.test/y@v1.0.0: reading h.test/y/@v/v1.0.0.info: 404 Not Found',
  );
  expect(goFailure('x', '', '').message).toContain('Go gave no reason');
});

/**
 * Runs beside a package manager in its sandbox, whose network reaches nothing: listens on a port of that network's
 * loopback and leads every connection over a Unix socket to the gateway outside.
 *
 * Refers to nothing outside itself: `bridgeScript` copies its source into the sandbox.
 */
export function bridge(socket: string, port: number, listening: () => void = () => {}): void {
  const net = process.getBuiltinModule('node:net');
  const server = net.createServer({ allowHalfOpen: true }, (inside) => {
    const outside = net.connect({ path: socket, allowHalfOpen: true });
    const end = () => {
      inside.destroy();
      outside.destroy();
    };
    inside.on('error', end).on('close', end).pipe(outside);
    outside.on('error', end).on('close', end).pipe(inside);
  });
  // The package manager alone decides when it is over.
  server.listen(port, '127.0.0.1', listening).unref();
}

/** The same as a script for `node --require`. */
export function bridgeScript(socket: string, port: number): string {
  return `(${bridge.toString()})(${JSON.stringify(socket)}, ${port});\n`;
}

/** Runs the command line that it is given, once the bridge listens, and ends as that did: for what is no Node program. */
export function bridgeAroundScript(socket: string, port: number): string {
  return `(${bridge.toString()})(${JSON.stringify(socket)}, ${port}, ${runArguments.toString()});\n`;
}

function runArguments(): void {
  const { spawn } = process.getBuiltinModule('node:child_process');
  const [file = '', ...args] = process.argv.slice(2);
  const program = spawn(file, args, { stdio: 'inherit' });
  program.on('error', (error) => {
    process.stderr.write(`${error.message}\n`);
    process.exit(127);
  });
  program.on('exit', (code) => process.exit(code ?? 1));
}

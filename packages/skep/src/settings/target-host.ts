// RFC 1123 §2.1: letters, digits, dashes and dots; an IPv4 address is one too.
const HOST = /^[A-Za-z0-9](?:[A-Za-z0-9.-]{0,251}[A-Za-z0-9])?$/;

/** True when a proxy can forward to `http://<text>:<port>`. */
export function isTargetHost(text: string): boolean {
  return HOST.test(text) && URL.canParse(`http://${text}:1`);
}

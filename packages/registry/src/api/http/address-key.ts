import { isIPv6 } from 'node:net';

const MAPPED = '::ffff:';
const GROUPS = 8;

/**
 * What counts as one address where requests are counted: of IPv6 the first 64 bits, because whoever has one address of such
 * a network has all of them (RFC 7421), and otherwise each would be somebody new.
 */
export function addressKey(address = ''): string {
  if (!isIPv6(address)) return address;
  if (address.startsWith(MAPPED) && address.includes('.')) return address.slice(MAPPED.length);
  const [plain = ''] = address.split('%');
  const [front = '', back] = plain.split('::');
  const head = groupsOf(front);
  const missing = back === undefined ? 0 : GROUPS - head.length - groupsOf(back).length;
  const groups = [...head, ...Array.from({ length: missing }, () => '0'), ...groupsOf(back ?? '')];
  return `${groups.slice(0, GROUPS / 2).join(':')}::/64`;
}

/** An IPv4 address at the end stands for two. */
function groupsOf(text: string): string[] {
  if (text === '') return [];
  return text.split(':').flatMap((group) => (group.includes('.') ? [group, ''] : group));
}

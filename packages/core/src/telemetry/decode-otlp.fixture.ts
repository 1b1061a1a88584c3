/** How a field is written: of what kind, or a message of its own. `all` may come more than once. */
type Kind =
  | 'text'
  | 'hex'
  | 'whole'
  | 'bool'
  | 'double'
  | 'fixed32'
  | 'fixed64'
  | 'doubles'
  | 'counts'
  | Fields;
type Fields = Readonly<Record<number, readonly [name: string, kind: Kind, many?: 'all']>>;

const VALUE: Fields = {
  1: ['stringValue', 'text'],
  2: ['boolValue', 'bool'],
  3: ['intValue', 'whole'],
  4: ['doubleValue', 'double'],
};
const ATTRIBUTE: Fields = { 1: ['key', 'text'], 2: ['value', VALUE] };
const attributesAt = (field: number): Fields => ({ [field]: ['attributes', ATTRIBUTE, 'all'] });
const RESOURCE: Fields = attributesAt(1);
const SCOPE: Fields = { 1: ['name', 'text'], 2: ['version', 'text'] };
const SPAN: Fields = {
  1: ['traceId', 'hex'],
  2: ['spanId', 'hex'],
  3: ['traceState', 'text'],
  4: ['parentSpanId', 'hex'],
  5: ['name', 'text'],
  6: ['kind', 'whole'],
  7: ['startTimeUnixNano', 'fixed64'],
  8: ['endTimeUnixNano', 'fixed64'],
  ...attributesAt(9),
  15: ['status', { 2: ['message', 'text'], 3: ['code', 'whole'] }],
  16: ['flags', 'fixed32'],
};
const TIMES: Fields = { 2: ['startTimeUnixNano', 'fixed64'], 3: ['timeUnixNano', 'fixed64'] };
const NUMBER: Fields = { ...TIMES, 4: ['asDouble', 'double'], 6: ['asInt', 'fixed64'], ...attributesAt(7) };
const HISTOGRAM: Fields = {
  ...TIMES,
  4: ['count', 'fixed64'],
  5: ['sum', 'double'],
  6: ['bucketCounts', 'counts'],
  7: ['explicitBounds', 'doubles'],
  ...attributesAt(9),
};
const pointsOf = (points: Fields): Fields => ({
  1: ['dataPoints', points, 'all'],
  2: ['aggregationTemporality', 'whole'],
  3: ['isMonotonic', 'bool'],
});
const METRIC: Fields = {
  1: ['name', 'text'],
  2: ['description', 'text'],
  3: ['unit', 'text'],
  5: ['gauge', pointsOf(NUMBER)],
  7: ['sum', pointsOf(NUMBER)],
  9: ['histogram', pointsOf(HISTOGRAM)],
};
const scoped = (name: string, fields: Fields): Fields => ({ 1: ['scope', SCOPE], 2: [name, fields, 'all'] });
const BODIES: Readonly<Record<string, Fields>> = {
  '/v1/traces': {
    1: [
      'resourceSpans',
      { 1: ['resource', RESOURCE], 2: ['scopeSpans', scoped('spans', SPAN), 'all'] },
      'all',
    ],
  },
  '/v1/metrics': {
    1: [
      'resourceMetrics',
      { 1: ['resource', RESOURCE], 2: ['scopeMetrics', scoped('metrics', METRIC), 'all'] },
      'all',
    ],
  },
};

/** What was posted to a collector at `path`, as OTLP has it in JSON (opentelemetry-proto 1.x); fields that are not named are left out. */
export function decodeOtlp(path: string, body: Buffer): unknown {
  const fields = BODIES[path];
  if (fields === undefined) throw new TypeError(`no such path: ${path}`);
  return messageIn(body, fields);
}

function messageIn(bytes: Buffer, fields: Fields): Record<string, unknown> {
  const message: Record<string, unknown> = {};
  for (const [name, , many] of Object.values(fields)) if (many === 'all') message[name] = [];
  let at = 0;
  const whole = (): bigint => {
    let value = 0n;
    for (let shift = 0n; ; shift += 7n) {
      const byte = bytes.readUInt8(at);
      at += 1;
      value |= BigInt(byte & 0x7f) << shift;
      if (byte < 0x80) return value;
    }
  };
  const take = (length: number): Buffer => bytes.subarray(at, (at += length));
  while (at < bytes.length) {
    const tag = Number(whole());
    const type = tag & 7;
    const raw = type === 0 ? whole() : take(type === 1 ? 8 : type === 5 ? 4 : Number(whole()));
    const field = fields[tag >> 3];
    if (field === undefined) continue;
    const [name, kind, many] = field;
    const value = typeof raw === 'bigint' ? (kind === 'bool' ? raw === 1n : Number(raw)) : valueIn(raw, kind);
    if (many === 'all') (message[name] as unknown[]).push(value);
    else message[name] = value;
  }
  return message;
}

function valueIn(raw: Buffer, kind: Kind): unknown {
  if (typeof kind !== 'string') return messageIn(raw, kind);
  if (kind === 'text') return raw.toString('utf8');
  if (kind === 'hex') return raw.toString('hex');
  if (kind === 'double') return raw.readDoubleLE();
  if (kind === 'fixed32') return raw.readUInt32LE();
  if (kind === 'fixed64') return String(raw.readBigUInt64LE());
  const eights = Array.from({ length: raw.length / 8 }, (_, index) => raw.subarray(index * 8, index * 8 + 8));
  return eights.map((eight) => (kind === 'doubles' ? eight.readDoubleLE() : String(eight.readBigUInt64LE())));
}

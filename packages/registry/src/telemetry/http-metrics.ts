import type { Code } from '@skep/core/errors/codes.ts';
import type { Attributes, Meter } from '@opentelemetry/api';
import { SkepError } from '@skep/core/errors/skep-error.ts';
import type { RequestObserver } from '../api/http/observe-requests.ts';
import type { RequestFailure } from '../api/http/request.ts';

/** Label of everything that no row of the table answers, so that callers cannot make labels up. */
export const UNKNOWN_ROUTE = 'unknown_route';

const SECONDS = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10];
const METHODS = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'PATCH', 'OPTIONS']);

/** Requests as metrics (docs/behaviour/registry.md#metrics; names of the OpenTelemetry HTTP conventions). */
export function measureRequests(meter: Meter): RequestObserver {
  const duration = meter.createHistogram('http.server.request.duration', {
    unit: 's',
    description: 'Duration of HTTP requests',
    advice: { explicitBucketBoundaries: SECONDS },
  });
  const active = meter.createUpDownCounter('http.server.active_requests', {
    description: 'HTTP requests that run',
  });
  const requests = meter.createCounter('skep.registry.http.requests', { description: 'HTTP requests' });
  const countRefusal = refusalCounter(meter);
  return {
    begin: ({ method }) => active.add(1, requestLabels(method)),
    end: ({ request: { method, pattern = UNKNOWN_ROUTE, failure }, status, durationMs }) => {
      const asked = requestLabels(method);
      active.add(-1, asked);
      const labels = { ...asked, 'http.route': pattern, 'http.response.status_code': status };
      duration.record(durationMs / 1000, labels);
      requests.add(1, labels);
      if (failure !== undefined) countRefusal(failure);
    },
  };
}

/** Methods are the caller's text; the conventions ask for `_OTHER` beyond the known ones. */
function requestLabels(method: string): Attributes {
  return { 'http.request.method': METHODS.has(method) ? method : '_OTHER', 'url.scheme': 'http' };
}

function refusalCounter(meter: Meter): (failure: RequestFailure) => void {
  const auth = meter.createCounter('skep.registry.auth.failures', {
    description: 'Requests without a valid token',
  });
  const authz = meter.createCounter('skep.registry.authz.denials', {
    description: 'Requests refused for lack of rights',
  });
  return (failure) => {
    if (failure.code === 'auth/unauthenticated' || failure.code === 'auth/unavailable') {
      auth.add(1, { provider: authProvider(failure), reason: authReason(failure) });
    }
    const layer = denialLayer(failure);
    if (layer !== undefined) authz.add(1, { layer });
  };
}

/** One of the fixed reasons of token checks; never text of the token. */
function authReason({ code, detail }: RequestFailure): string {
  const { reason } = detail;
  return code === 'auth/unavailable' || typeof reason !== 'string' ? 'unavailable' : reason;
}

/** As configured; where there was no token, or one of nobody's, no provider has failed. */
function authProvider({ detail: { provider } }: RequestFailure): string {
  return typeof provider === 'string' ? provider : 'none';
}

const ENTRY_DENIALS: ReadonlySet<Code> = new Set([
  'access/insufficient-claims',
  'access/unlabeled',
  'access/last-claim',
  'access/hidden',
]);

/** Which of the checks of docs/behaviour/registry.md#order-of-checks said no. */
function denialLayer({ code, detail }: RequestFailure): 'role' | 'gate' | 'entry' | undefined {
  if (code === 'access/forbidden') return 'role';
  if (!ENTRY_DENIALS.has(code)) return undefined;
  return detail['layer'] === 'gate' ? 'gate' : 'entry';
}

/** So many may be answered at once: a scrape costs as much as many requests. */
const MAX_SCRAPES = 2;

/** Fails with `registry/too-many-scrapes` instead of letting scrapers queue up. */
export function limitedScrapes(scrape: () => Promise<string>): () => Promise<string> {
  let running = 0;
  return async () => {
    if (running >= MAX_SCRAPES) throw new SkepError('registry/too-many-scrapes');
    running += 1;
    try {
      return await scrape();
    } finally {
      running -= 1;
    }
  };
}

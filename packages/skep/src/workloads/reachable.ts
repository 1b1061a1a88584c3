import type { Reachable } from '../clients/update-client.ts';
import { shownUrl, type WorkloadView } from './view.ts';

/** A workload as clients reach it. */
export function reachableOf(view: WorkloadView): Reachable {
  const { name, registryName, proxyMode } = view;
  const mode = proxyMode === 'sse' ? 'sse' : 'streamable-http';
  return { name, registryName, mode, url: shownUrl(view), otherUrls: [view.url] };
}

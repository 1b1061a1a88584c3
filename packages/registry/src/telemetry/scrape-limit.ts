import { SkepError } from '@skep/core/errors/skep-error.ts';

/** So many may be answered at once: a scrape costs as much as many requests. */
const MOST_SCRAPES = 2;

/** Fails with `registry/too-many-scrapes` instead of letting scrapers queue up. */
export function limitedScrapes(scrape: () => Promise<string>): () => Promise<string> {
  let running = 0;
  return async () => {
    if (running >= MOST_SCRAPES) throw new SkepError('registry/too-many-scrapes');
    running += 1;
    try {
      return await scrape();
    } finally {
      running -= 1;
    }
  };
}

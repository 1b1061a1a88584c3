import { describe } from 'vitest';
import { administration } from './administration.ts';
import { changeFeed } from './change-feed.ts';
import { type OpenStore, openedForEach } from './fixture.ts';
import { listing } from './listing.ts';
import { newEntries } from './new-entries.ts';
import { publishing } from './publishing.ts';
import { reconciliation } from './reconciliation.ts';
import { synchronisation } from './synchronisation.ts';

/** What every store must do. Run it from a test file that knows how to open one. */
export function storeContract(name: string, open: OpenStore): void {
  describe(`store contract: ${name}`, () => {
    const fixture = openedForEach(open);
    synchronisation(fixture);
    publishing(fixture);
    newEntries(fixture);
    listing(fixture);
    administration(fixture);
    reconciliation(fixture);
    changeFeed(fixture);
  });
}

import { decideDelete } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import { adminRoute, NO_CONTENT } from '../admin-route.ts';
import { enforceWith } from '../refuse.ts';
import { resourceName } from '../resource-name.ts';
import { unknownSource } from './visible-source.ts';

/** Deletes a source. That registries list it is said last, by the store. */
export const deleteSource = adminRoute({
  method: 'DELETE',
  paths: ['/v1/sources/{name}'],
  access: { role: 'manageSources' },
  name: 'deleteSource',
  audit: 'source.delete',
  summary: 'Delete a source and its entries',
  parameters: { name: resourceName },
  query: {},
  replies: {
    204: { description: 'Deleted' },
    400: { description: 'A parameter is invalid', schema: 'Error' },
    403: { description: 'It is from the configuration file, or the caller lacks a claim', schema: 'Error' },
    404: { description: 'There is no such source', schema: 'Error' },
    409: { description: 'Registries list it', schema: 'Error' },
  },
  handler: async (call, { name }) => {
    const { revision } = await call.store.deleteSource(name, ({ existing }) => {
      if (existing === undefined) throw unknownSource(name);
      const { creationType, claims } = existing;
      enforceWith(decideDelete(call.authority, { creationType, claims: storedClaims(claims) }), {
        'config-created': `cannot delete config-created source via API: ${name}`,
      });
    });
    await call.applied(revision);
    await call.sync.sourceChanged(name);
    return NO_CONTENT;
  },
});

import { decideDelete } from '../../../access/admin-scope.ts';
import { storedClaims } from '../../../access/claim-set.ts';
import { adminRoute, NO_CONTENT } from '../admin-route.ts';
import { enforceWith } from '../refuse.ts';
import { resourceName } from '../resource-name.ts';
import { unknownRegistry } from './visible-registry.ts';

/** Deletes a registry; its sources stay (docs/behaviour/registry.md#registries-over-the-api). */
export const deleteRegistry = adminRoute({
  method: 'DELETE',
  paths: ['/v1/registries/{name}'],
  access: { role: 'manageRegistries' },
  name: 'deleteRegistry',
  audit: 'registry.delete',
  summary: 'Delete a registry',
  parameters: { name: resourceName },
  query: {},
  replies: {
    204: { description: 'Deleted' },
    400: { description: 'A parameter is invalid', schema: 'Error' },
    403: { description: 'It is from the configuration file, or the caller lacks a claim', schema: 'Error' },
    404: { description: 'There is no such registry', schema: 'Error' },
  },
  handler: async (call, { name }) => {
    const { revision } = await call.store.deleteRegistry(name, (existing) => {
      if (existing === undefined) throw unknownRegistry(name);
      const { creationType, claims } = existing;
      enforceWith(decideDelete(call.authority, { creationType, claims: storedClaims(claims) }), {
        'config-created': `cannot delete config-created registry via API: ${name}`,
      });
    });
    await call.applied(revision);
    return NO_CONTENT;
  },
});

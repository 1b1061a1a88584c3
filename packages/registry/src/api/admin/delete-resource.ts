import { adminRoute, NO_CONTENT } from './admin-route.ts';
import { enforceDelete, resourceName } from './resource.ts';

const row = { method: 'DELETE', parameters: { name: resourceName }, query: {} } as const;

const REPLIES = {
  204: { description: 'Deleted' },
  400: 'A parameter is invalid',
  403: 'It is from the configuration file, or the caller lacks a claim',
} as const;

/** That registries list it is said last, by the store. */
export const deleteSource = adminRoute({
  ...row,
  paths: ['/v1/sources/{name}'],
  access: { role: 'manageSources' },
  name: 'deleteSource',
  audit: 'source.delete',
  summary: 'Delete a source and its entries',
  replies: { ...REPLIES, 404: 'There is no such source', 409: 'Registries list it' },
  handler: async (call, { name }) => {
    const { revision } = await call.store.deleteSource(name, ({ existing }) =>
      enforceDelete('source', name, call.authority, existing),
    );
    await call.applied(revision);
    await call.sync.sourceChanged(name);
    return NO_CONTENT;
  },
});

/** The sources stay. */
export const deleteRegistry = adminRoute({
  ...row,
  paths: ['/v1/registries/{name}'],
  access: { role: 'manageRegistries' },
  name: 'deleteRegistry',
  audit: 'registry.delete',
  summary: 'Delete a registry',
  replies: { ...REPLIES, 404: 'There is no such registry' },
  handler: async (call, { name }) => {
    const { revision } = await call.store.deleteRegistry(name, (existing) =>
      enforceDelete('registry', name, call.authority, existing),
    );
    await call.applied(revision);
    return NO_CONTENT;
  },
});

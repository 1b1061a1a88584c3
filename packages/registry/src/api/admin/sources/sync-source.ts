import { isSynced } from '../../../store/rows.ts';
import { badRequest } from '../../route/parameter.ts';
import { adminRoute, jsonAnswer } from '../admin-route.ts';
import { resourceName, unknownResource, visibleSource } from '../resource.ts';
import { syncStatusInfo } from './source-info.ts';

const row = {
  paths: ['/v1/sources/{name}/sync'],
  access: { role: 'manageSources' },
  parameters: { name: resourceName },
  query: {},
} as const;

const NOT_FOUND = 'There is no such source for this caller';

/** Asks for a synchronisation now; its result is in the status. */
export const startSync = adminRoute({
  ...row,
  method: 'POST',
  name: 'startSync',
  audit: 'source.sync.start',
  summary: 'Synchronise a source now',
  replies: {
    202: { description: 'Asked for; the status as it is', schema: 'SyncStatus' },
    400: 'The source is none that is synchronised',
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    const { kind, orphaned } = await visibleSource(call, name);
    if (!isSynced(kind)) {
      throw badRequest(`source ${name} is not synchronised (type: ${kind})`);
    }
    if (orphaned) throw badRequest(`source ${name} is not synchronised: it left the configuration file`);
    await call.sync.syncNow(name);
    const status = await call.store.readStatus(name);
    if (status === undefined) throw unknownResource('source', name);
    return jsonAnswer(202, syncStatusInfo(status));
  },
});

export const getSync = adminRoute({
  ...row,
  method: 'GET',
  name: 'getSync',
  audit: 'source.sync.read',
  summary: 'How the synchronisation of a source is doing',
  replies: {
    200: { description: 'The status', schema: 'SyncStatus' },
    400: 'A parameter is invalid',
    404: NOT_FOUND,
  },
  handler: async (call, { name }) => {
    await visibleSource(call, name);
    const status = await call.store.readStatus(name);
    if (status === undefined) throw unknownResource('source', name);
    return jsonAnswer(200, syncStatusInfo(status));
  },
});

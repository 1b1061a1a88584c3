import { z } from 'zod';
import { bundleShape } from './bundle.ts';

/** Decodes one plugin of a registry file; unknown members stay. */
export const pluginDocument = z.looseObject(bundleShape);

export type Plugin = z.infer<typeof pluginDocument>;

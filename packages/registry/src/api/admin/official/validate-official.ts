import { SkepError } from '@skep/core/errors/skep-error.ts';
import { OFFICIAL_BODY } from '../bodies.ts';
import { readPayload } from '../publish/payload.ts';
import { jsonAnswer } from '../admin-route.ts';
import { officialRoutes } from './official-route.ts';

/** `POST /v0/validate` of the official API: says what publishing would refuse about the document, and changes nothing. */
export const validateOfficial = officialRoutes({
  method: 'POST',
  path: '/validate',
  access: { role: 'manageEntries' },
  name: 'validateOfficial',
  audit: 'entry.validate',
  summary: 'Check a server document without publishing it',
  parameters: {},
  body: OFFICIAL_BODY,
  replies: {
    200: { description: 'What is wrong with the document, if anything', schema: 'Validation' },
  },
  below: {
    400: 'The registry parameter is invalid',
    404: 'There is no such registry',
  },
  handler: async (call) => {
    const fault = faultOf(() => {
      const body = OFFICIAL_BODY.read(call.body, call.limits);
      readPayload(
        body,
        { kind: 'server', document: body.text },
        { bareNames: 'refused', limits: call.limits },
      );
    });
    const issues =
      fault === undefined
        ? []
        : [{ type: 'schema', path: '', message: fault, severity: 'error', reference: '' }];
    return jsonAnswer(200, { valid: issues.length === 0, issues });
  },
});

function faultOf(check: () => void): string | undefined {
  try {
    check();
    return undefined;
  } catch (error) {
    if (
      error instanceof SkepError &&
      (error.code === 'registry/bad-request' || error.code === 'claims/invalid')
    )
      return error.message;
    throw error;
  }
}

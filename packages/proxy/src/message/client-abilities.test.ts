import { expect, test } from 'vitest';
import { request } from '../doubles/started-mux.ts';
import { abilitiesOf, CARRIED_CAPABILITIES, refusalOf } from './client-abilities.ts';

const declaring = (capabilities: unknown) => abilitiesOf(request(1, 'initialize', { capabilities }));

test.each([
  [undefined, []],
  [null, []],
  [{ roots: true, sampling: 'yes' }, []],
  [{ elicitation: {} }, ['elicitation.form']],
  [{ elicitation: { url: {} } }, ['elicitation.url']],
  [{ roots: {}, sampling: {} }, ['roots', 'sampling']],
  [CARRIED_CAPABILITIES, ['roots', 'sampling', 'sampling.tools', 'elicitation.url', 'elicitation.form']],
])('a client that declares %j can be asked for %j', (capabilities, abilities) => {
  expect([...declaring(capabilities)]).toEqual(abilities);
});

test.each([
  ['roots/list', {}, { sampling: {} }, -32601],
  ['roots/list', {}, { roots: {} }, undefined],
  ['sampling/createMessage', {}, { roots: {} }, -32601],
  ['sampling/createMessage', { tools: [] }, { sampling: {} }, -32602],
  ['sampling/createMessage', { tools: [] }, { sampling: { tools: {} } }, undefined],
  ['sampling/createMessage', { toolChoice: {} }, { sampling: {} }, -32602],
  ['elicitation/create', {}, {}, -32601],
  ['elicitation/create', { mode: 'form' }, { elicitation: {} }, undefined],
  ['elicitation/create', { mode: 'url' }, { elicitation: {} }, -32602],
  ['elicitation/create', {}, { elicitation: { url: {} } }, -32602],
  ['elicitation/create', { mode: 'url' }, { elicitation: { url: {} } }, undefined],
])(
  '%s %j to a client with %j is answered with %s, however large it is',
  (method, params, capabilities, code) => {
    const large = { ...params, messages: 'x'.repeat(100_000) };
    const mayHold = { ...params, ...('tools' in params ? { tools: ['x'.repeat(100_000)] } : {}) };
    for (const written of [params, large, mayHold])
      expect(refusalOf(request(1, method, written), declaring(capabilities))?.code).toBe(code);
  },
);

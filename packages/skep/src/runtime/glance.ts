import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { ELSEWHERE, RUNTIME_KINDS, type RuntimeKind } from '../settings/identity.ts';
import { glanceAtEngine } from './docker/glance.ts';
import type { Answer, Glance, Surroundings } from './environment.ts';
import type { Runtime } from './runtime.ts';
import { glanceAtCluster } from './kubernetes/glance.ts';
import { glanceAtSandbox } from './sandbox/glance.ts';

/** What a server can be run from. */
export type Form = 'image' | 'npm' | 'pypi' | 'remote';

/** Which of them run on this machine. */
export type Abilities = Readonly<Record<Form, Answer>>;

interface Kind {
  readonly runs: readonly Form[];
  /** A program of the system that a form cannot do without. */
  readonly needs?: Readonly<Partial<Record<Form, string>>>;
  readonly glance: Glance;
}

/** What each kind of runtime runs. */
const KINDS: Readonly<Record<RuntimeKind, Kind>> = {
  docker: {
    runs: ['image', 'npm', 'pypi'],
    glance: glanceAtEngine,
  },
  kubernetes: {
    runs: ['image'],
    glance: glanceAtCluster,
  },
  sandbox: {
    runs: ['npm', 'pypi'],
    needs: { pypi: 'python3' },
    glance: glanceAtSandbox,
  },
};

/** What runs on this machine, as far as it can be told without waiting. Never fails. */
export async function glanceAtRuntimes(surroundings: Surroundings): Promise<Abilities> {
  const wanted = surroundings.env['SKEP_RUNTIME'];
  const kinds = RUNTIME_KINDS.filter((kind) => !wanted || kind === wanted);
  const answers = await Promise.all(
    kinds.map(async (kind) => {
      const { runs, needs = {}, glance } = KINDS[kind];
      const there = runs.filter((form) => isThere(needs[form]));
      return { runs: there, answer: await glance(surroundings) };
    }),
  );
  return abilitiesBy((form) => {
    const said = answers.filter(({ runs }) => runs.includes(form)).map(({ answer }) => answer);
    return (['yes', 'unknown'] as const).find((answer) => said.includes(answer)) ?? 'no';
  });
}

function isThere(program: string | undefined): boolean {
  return (
    program === undefined || ['/usr/bin', '/usr/local/bin'].some((one) => existsSync(join(one, program)))
  );
}

/** What a runtime that is already connected runs. */
export function abilitiesOf({ kind }: Pick<Runtime, 'kind'>): Abilities {
  const runs: readonly Form[] = kind === ELSEWHERE ? [] : KINDS[kind].runs;
  return abilitiesBy((form) => (runs.includes(form) ? 'yes' : 'no'));
}

function abilitiesBy(answer: (form: Form) => Answer): Abilities {
  return { image: answer('image'), npm: answer('npm'), pypi: answer('pypi'), remote: 'yes' };
}

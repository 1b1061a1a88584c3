/** What is killed in the middle of it all. */
export const VICTIMS = ['command', 'supervisor', 'engine', 'container', 'gateway'] as const;
export type Victim = (typeof VICTIMS)[number];

/** What is being done to a workload at that moment. */
export type Action = 'run' | 'stop' | 'start' | 'upgrade' | 'rm' | 'nothing';

/** What a workload is when nothing happens to it. */
export type State = 'gone' | 'stopped' | 'running';

/** One kill: who, after which time of the command, and what that does. */
export interface Point {
  readonly action: Action;
  readonly victim: Victim;
  /** Milliseconds after all commands of the round have begun. */
  readonly afterMs: number;
}

/** Numbers from 0 to 1 that are the same for the same seed (mulberry32). */
export function numbersFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d_2b_79_f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** What can be done in each state; the more often the more likely. */
const ACTIONS: Readonly<Record<State, readonly Action[]>> = {
  gone: ['run'],
  stopped: ['start', 'start', 'start', 'upgrade', 'rm'],
  running: ['stop', 'upgrade', 'upgrade', 'rm', 'rm', 'nothing', 'nothing'],
};

/** About how long a command takes on an idle machine, in milliseconds: kills come within that. */
const LASTS: Readonly<Record<Action, number>> = {
  run: 1500,
  start: 1200,
  upgrade: 2000,
  stop: 800,
  rm: 800,
  nothing: 500,
};

const CHANCES: readonly (readonly [Victim, number])[] = [
  ['command', 0.3],
  ['container', 0.55],
  ['gateway', 0.75],
  ['supervisor', 0.9],
  ['engine', 1],
];

/**
 * A round: one point for each workload, in the order of their states. Takes as many numbers whatever the states are, and
 * kills the supervisor and the engine once at most, because all workloads lose them.
 */
export function drawRound(states: readonly State[], next: () => number): readonly Point[] {
  const spent = new Set<Victim>();
  return states.map((state) => {
    const [one, two, three] = [next(), next(), next()];
    const action = ACTIONS[state][Math.floor(one * ACTIONS[state].length)] ?? 'nothing';
    const drawn = CHANCES.find(([, upTo]) => two < upTo)?.[0] ?? 'command';
    const victim = spent.has(drawn) || (drawn === 'command' && action === 'nothing') ? 'container' : drawn;
    if (victim === 'supervisor' || victim === 'engine') spent.add(victim);
    return { action, victim, afterMs: Math.round(three * LASTS[action]) };
  });
}

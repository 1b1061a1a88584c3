import * as shape from '@skep/core/settings/shape.ts';

const MAX_TOKENS = 1_000_000_000;

const bucket = shape.exactly({
  /** How many calls at once. */
  maxTokens: shape.wholeNumber(1, MAX_TOKENS),
  /** In which an empty bucket fills. */
  refillPeriod: shape.durationText(),
});
const limits = { shared: shape.optional(bucket), perUser: shape.optional(bucket) };
const tool = shape.exactly({ name: shape.textThat((name) => name !== '', 'is empty'), ...limits });
const members = shape.exactly({ ...limits, tools: shape.optional(shape.listOf(tool)) });

/** How often tools may be called (docs/behaviour/proxy.md#rate-limits); it is a guard, so it has to limit something. */
export type RateLimits = shape.ShapeType<typeof members>;

export const rateLimitsShape: shape.Shape<RateLimits> = (value, fail) => {
  const read = members(value, fail);
  const all = [read, ...(read.tools ?? [])];
  const isIdle = (one: Pick<RateLimits, 'shared' | 'perUser'>): boolean =>
    one.shared === undefined && one.perUser === undefined;
  if (all.every(isIdle)) fail('limits nothing');
  const names = (read.tools ?? []).map(({ name }) => name);
  const twice = names.findIndex((name, at) => names.indexOf(name) !== at);
  return twice === -1 ? read : fail('is there twice', 'tools', twice, 'name');
};

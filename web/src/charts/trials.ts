// Functions that the charts of trials share: the trials to show, and the description of a trial.
import type { Study, Trial } from '../data';
import { bytes, metric, outcomeOf, words } from '../format';

// The trials that ran to an outcome of their own: no duplicates, stopped trials or refused configurations.
export const measuredOrFailed = (study: Study): Trial[] =>
  study.trials.filter((trial) => trial.place === 'ended' && !trial.model_info && trial.duplicate_of === null &&
    trial.outcome !== 'stopped' && trial.outcome !== 'invalid_config');

export const byEnd = (a: Trial, b: Trial): number =>
  (a.ended_at ?? '') < (b.ended_at ?? '') ? -1 : (a.ended_at ?? '') > (b.ended_at ?? '') ? 1 : a.id - b.id;

export interface Point { value: (number | string | null)[]; trial: number }

export function describe(study: Study, id: number): (string | null)[] {
  const trial = study.trials[id];
  if (!trial) return [];
  return [
    `Trial ${trial.id}: ${outcomeOf(trial)}`,
    `ZeRO stage ${trial.stage}, micro batch ${trial.micro_batch ?? '–'}, ${words(trial.phase)}`,
    trial.value === null ? null : metric(study.study.metric, trial.value),
    trial.peak_bytes === null ? null : `peak memory ${bytes(trial.peak_bytes)}`,
    trial.reason ? trial.reason.slice(0, 120) : null,
    trial.note ? trial.note.slice(0, 160) : null,
  ];
}

// The range of the values, with room below for trials without a value.
export function extent(values: number[]): { low: number; high: number; none: number } {
  if (values.length === 0) return { low: 0, high: 1, none: 0 };
  let low = Infinity, high = -Infinity;
  for (const value of values) { low = Math.min(low, value); high = Math.max(high, value); }
  const span = high - low || Math.abs(high) || 1;
  const bottom = low - 0.14 * span;
  return { low: bottom < 0 && low >= 0 ? -0.1 * high : bottom, high: high + 0.06 * span, none: bottom < 0 && low >= 0 ? -0.05 * high : low - 0.08 * span };
}

export const stagesOf = (trials: Trial[]): number[] => [...new Set(trials.map((trial) => trial.stage))].sort();

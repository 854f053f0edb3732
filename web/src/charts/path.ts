// The path of the search: all trials in the order of their ends, and the best so far.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { Study, Trial } from '../data';
import { metric, metricName, outcomeOf, plural } from '../format';
import { stageShapes } from '../theme';
import type { Point } from './trials';
import { byEnd, describe, extent, measuredOrFailed, stagesOf } from './trials';

const inOrder = (study: Study): Trial[] => measuredOrFailed(study).sort(byEnd);

export const path: ChartKind = {
  id: 'path',
  title: 'The path of the search',
  shows: (study) => measuredOrFailed(study).length > 0,

  summary(study) {
    const trials = inOrder(study);
    const last = study.best_path.at(-1);
    const failed = trials.filter((trial) => trial.value === null).length;
    if (!last) return `${plural(trials.length, 'trial')} ended, none with a result.`;
    const place = trials.findIndex((trial) => trial.id === last.trial) + 1;
    return `${plural(trials.length, 'trial')} ended, ${failed} without a result. The best measurement, ` +
      `${metric(study.study.metric, last.value)}, came with trial ${last.trial}, the ${ordinal(place)} to end.`;
  },

  option(study, palette) {
    const trials = inOrder(study);
    const place = new Map(trials.map((trial, i) => [trial.id, i + 1]));
    const range = extent(trials.flatMap((trial) => trial.value ?? []));
    const name = study.study.metric;
    const points = (of: Trial[]): Point[] =>
      of.map((trial) => ({ value: [place.get(trial.id)!, trial.value ?? range.none], trial: trial.id }));
    const large = trials.length > 2000;
    const steps = study.best_path.map((step) => [place.get(step.trial)!, step.value]);
    if (steps.length > 0) steps.push([trials.length, steps.at(-1)![1]!]);
    return {
      grid: { left: 78, right: 16, top: 36, bottom: trials.length > 300 ? 84 : 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (point: Point) => describe(study, point?.trial)),
      dataZoom: trials.length > 300 ? [{ type: 'slider', bottom: 8, height: 18, textStyle: { color: palette.faint } }] : [],
      xAxis: { type: 'value', min: 0.5, max: trials.length + 0.5, minInterval: 1,
        ...axis(palette, 'trials in the order in which they ended', { splitLine: { show: false },
          axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false } }) },
      yAxis: { type: 'value', min: range.low, max: range.high,
        ...axis(palette, metricName(name), { nameGap: 62,
          axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false, formatter: (value: number) => value < 0 ? '' : metric(name, value) } }) },
      series: [
        { name: 'best so far', type: 'line', step: 'end', symbol: 'none', data: steps, z: 3, silent: true,
          color: palette.good, lineStyle: { width: 2.5, color: palette.good } },
        ...stagesOf(trials).map((stage) => ({
          name: `stage ${stage}`, type: 'scatter', symbol: stageShapes[stage], symbolSize: large ? 4 : 9,
          color: palette.stages[stage],
          data: points(trials.filter((trial) => trial.stage === stage && trial.value !== null)),
        })),
        { name: 'out of memory', type: 'scatter', symbol: cross, symbolSize: large ? 5 : 9, color: palette.bad,
          data: points(trials.filter((trial) => trial.outcome === 'out_of_memory')) },
        { name: 'failed', type: 'scatter', symbol: plus, symbolSize: large ? 5 : 10, color: palette.warn,
          data: points(trials.filter((trial) => trial.value === null && trial.outcome !== 'out_of_memory')) },
      ].filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    const best = new Map(study.best_path.map((step) => [step.trial, step.value]));
    let now: number | null = null;
    return {
      head: ['Order', 'Trial', 'Outcome', study.study.metric, 'Best so far'],
      numeric: [true, true, false, true, true],
      rows: inOrder(study).map((trial, i) => {
        now = best.get(trial.id) ?? now;
        return [i + 1, trial.id, outcomeOf(trial), metric(study.study.metric, trial.value), metric(study.study.metric, now)];
      }),
    };
  },
};

export const cross = 'path://M1,0 L5,4 L9,0 L10,1 L6,5 L10,9 L9,10 L5,6 L1,10 L0,9 L4,5 L0,1 Z';
export const plus = 'path://M4,0 L6,0 L6,4 L10,4 L10,6 L6,6 L6,10 L4,10 L4,6 L0,6 L0,4 L4,4 Z';

function ordinal(n: number): string {
  const tens = n % 100;
  const suffix = tens >= 11 && tens <= 13 ? 'th' : ['th', 'st', 'nd', 'rd'][n % 10] ?? 'th';
  return `${n}${suffix}`;
}

// The metric against the micro batch. Each stage has a colour and a shape; trials without a result lie along the
// bottom.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { Study, Trial } from '../data';
import { metric, metricName, outcomeOf, plural } from '../format';
import { stageShapes } from '../theme';
import { cross, plus } from './path';
import type { Point } from './trials';
import { describe, extent, measuredOrFailed, stagesOf } from './trials';

const shown = (study: Study): Trial[] => measuredOrFailed(study).filter((trial) => trial.micro_batch !== null);

export const microBatch: ChartKind = {
  id: 'micro-batch',
  title: 'Metric against micro batch',
  shows: (study) => shown(study).length > 1,

  summary(study) {
    const parts = study.stages.filter((stage) => stage.best_trial !== null).map((stage) => {
      const trial = study.trials[stage.best_trial!];
      return `stage ${stage.stage} is best at micro batch ${trial?.micro_batch ?? '–'} (${metric(study.study.metric, stage.best_value)})`;
    });
    const failed = shown(study).filter((trial) => trial.value === null).length;
    const sentence = parts.length > 0 ? `${parts.join(', ')}.` : 'No trial has a result.';
    return sentence[0]!.toUpperCase() + sentence.slice(1) + (failed > 0 ? ` Along the bottom: ${plural(failed, 'trial')} without a result.` : '');
  },

  option(study, palette) {
    const trials = shown(study);
    const name = study.study.metric;
    const range = extent(trials.flatMap((trial) => trial.value ?? []));
    const sizes = trials.map((trial) => trial.micro_batch!);
    const large = trials.length > 2000;
    const points = (of: Trial[]): Point[] =>
      of.map((trial) => ({ value: [trial.micro_batch!, trial.value ?? range.none], trial: trial.id }));
    const most = Math.max(...sizes), least = Math.min(...sizes);
    const wide = most / least > 6;
    return {
      grid: { left: 78, right: 16, top: 36, bottom: 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (point: Point) => describe(study, point?.trial)),
      xAxis: wide
        ? { type: 'log', logBase: 2, min: 2 ** Math.floor(Math.log2(least)), max: 2 ** Math.ceil(Math.log2(most)),
          ...axis(palette, 'micro batch (samples of a device)') }
        : { type: 'value', minInterval: 1, min: least - 1, max: most + 1, ...axis(palette, 'micro batch (samples of a device)') },
      yAxis: { type: 'value', min: range.low, max: range.high,
        ...axis(palette, metricName(name), { nameGap: 62,
          axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false, formatter: (value: number) => value < 0 ? '' : metric(name, value) } }) },
      series: [
        ...stagesOf(trials).map((stage) => ({
          name: `stage ${stage}`, type: 'scatter', symbol: stageShapes[stage], symbolSize: large ? 4 : 10,
          color: palette.stages[stage], itemStyle: { opacity: 0.85 },
          data: points(trials.filter((trial) => trial.stage === stage && trial.value !== null)),
        })),
        { name: 'out of memory', type: 'scatter', symbol: cross, symbolSize: large ? 5 : 10, color: palette.bad,
          data: points(trials.filter((trial) => trial.outcome === 'out_of_memory')) },
        { name: 'failed', type: 'scatter', symbol: plus, symbolSize: large ? 5 : 10, color: palette.warn,
          data: points(trials.filter((trial) => trial.value === null && trial.outcome !== 'out_of_memory')) },
      ].filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    return {
      head: ['Stage', 'Micro batch', study.study.metric, 'Outcome', 'Trial'],
      numeric: [true, true, true, false, true],
      rows: shown(study)
        .sort((a, b) => a.stage - b.stage || a.micro_batch! - b.micro_batch! || a.id - b.id)
        .map((trial) => [trial.stage, trial.micro_batch, metric(study.study.metric, trial.value), outcomeOf(trial), trial.id]),
    };
  },
};

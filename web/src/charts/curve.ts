// Losses and gradient norms, step by step: of the user's own configuration, of the best or its twin, and of trials that
// have diverged.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { Step, Study, Trial } from '../data';
import { words } from '../format';

const kMostDiverged = 4;

interface Line { name: string; trial: Trial }

const hasCurve = (trial: Trial | undefined): trial is Trial => !!trial?.curve;

function lines(study: Study): Line[] {
  const { check, best } = study.study;
  const own = study.trials[study.baseline ?? -1];
  const shown = study.trials[check?.twin ?? best?.trial ?? -1];
  const list: Line[] = [];
  if (hasCurve(own)) list.push({ name: `your own (trial ${own.id})`, trial: own });
  if (hasCurve(shown) && shown !== own) {
    list.push({ name: `${check?.twin === shown.id ? 'the best at your own batch' : 'the best'} (trial ${shown.id})`, trial: shown });
  }
  for (const trial of study.trials.filter((one) => one.outcome === 'diverged' && hasCurve(one)).slice(0, kMostDiverged)) {
    list.push({ name: `diverged (trial ${trial.id})`, trial });
  }
  return list;
}

// What is no number has no point.
const points = (line: Line, values: Step[]): object[] =>
  values.map((value, i) => ({ value: [i + 1, typeof value === 'number' ? value : null], trial: line.trial.id }));

const text = (value: Step | undefined): string =>
  typeof value === 'number' ? String(Number(value.toPrecision(5))) : value ?? '–';

export const curve: ChartKind = {
  id: 'curve',
  title: 'What the trainings learn',
  shows: (study) => lines(study).length > 0,

  summary(study) {
    const diverged = study.trials.filter((trial) => trial.outcome === 'diverged').length;
    const check = study.study.check;
    const verdict = !check ? '' : check.state === 'unchecked' ? ` The best was not checked: ${check.text}.` : ` The best was checked: ${check.text}.`;
    return `Loss (solid) and gradient norm (dashed) of each step; ${diverged === 0 ? 'no trial' : diverged} ` +
      `diverged from your own configuration.${verdict}`;
  },

  option(study, palette) {
    const shades = [palette.text, palette.good, palette.bad, palette.warn, palette.faint, palette.line];
    return {
      grid: { left: 64, right: 64, top: 36, bottom: 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (point: { trial: number; value: [number, number] }) => {
        const trial = study.trials[point?.trial];
        return trial ? [`Trial ${trial.id}: ${words(trial.outcome ?? '')}`, `step ${point.value[0]}: ${text(point.value[1])}`, trial.reason] : [];
      }),
      xAxis: { type: 'value', min: 1, minInterval: 1, ...axis(palette, 'step') },
      yAxis: [{ type: 'value', scale: true, ...axis(palette, 'loss', { nameGap: 44 }) },
        { type: 'value', scale: true, ...axis(palette, 'gradient norm', { nameGap: 44, splitLine: { show: false } }) }],
      series: lines(study).flatMap((line, i) => [
        { name: line.name, type: 'line', color: shades[i], symbolSize: 5, data: points(line, line.trial.curve!.losses) },
        { name: line.name, type: 'line', color: shades[i], symbolSize: 5, yAxisIndex: 1, lineStyle: { type: 'dashed' },
          data: points(line, line.trial.curve!.grad_norms) },
      ]).filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    return {
      head: ['Trial', 'What', 'Step', 'Loss', 'Gradient norm'],
      numeric: [true, false, true, true, true],
      rows: lines(study).flatMap(({ name, trial }) => {
        const { losses, grad_norms: norms } = trial.curve!;
        const steps = Math.max(losses.length, norms.length);
        return Array.from({ length: steps }, (_, i) => [trial.id, name, i + 1, text(losses[i]), text(norms[i])]);
      }),
    };
  },
};

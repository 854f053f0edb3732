// The association of the configuration's keys with the metric.
import type { ChartKind } from '../chart';
import { axis, tooltip } from '../chart';
import type { Knob, Study } from '../data';
import { json, metric, percent, plural } from '../format';

const kMost = 12;
const short = (key: string): string => key.replace(/^zero_optimization\./, '').replace('train_micro_batch_size_per_gpu', 'micro batch');
const strongest = (study: Study): Knob[] => study.knobs.slice(0, kMost);

function bestValue(study: Study, knob: Knob): Knob['values'][number] {
  const sign = study.study.direction === 'minimize' ? -1 : 1;
  return knob.values.reduce((a, b) => (sign * b.mean > sign * a.mean ? b : a));
}

export const knobs: ChartKind = {
  id: 'knobs',
  title: 'Which knobs mattered',
  shows: (study) => study.knobs.length > 0,
  height: (study) => 70 + 30 * strongest(study).length,

  summary(study) {
    const first = study.knobs[0]!;
    if (first.share < 0.05) return 'No single key is associated with the metric.';
    const shares = study.knobs.filter((knob) => knob.share >= 0.05).slice(0, 3).map((knob) =>
      `${short(knob.key)} ${percent(knob.share)} (best on average: ${json(bestValue(study, knob).value)})`);
    return `Shares of the metric's variance: ${shares.join(', ')}. Each key is examined alone, and the search does not choose ` +
      'values evenly: this shows associations, not causes.';
  },

  option(study, palette, width) {
    const list = strongest(study);
    return {
      grid: { left: width < 500 ? 130 : 220, right: 56, top: 8, bottom: 46 },
      tooltip: tooltip(palette, (data: { knob: number }) => {
        const knob = list[data?.knob];
        return knob ? [knob.key, `${percent(knob.share)} of the variance`,
          ...knob.values.slice(0, 8).map((value) => `${json(value.value)}: mean ${metric(study.study.metric, value.mean)}, ${plural(value.trials, 'trial')}`)] : [];
      }),
      xAxis: { type: 'value', min: 0, max: 1, ...axis(palette, 'share of the variance', { axisLabel: { color: palette.faint, formatter: (value: number) => percent(value) } }) },
      yAxis: { type: 'category', inverse: true, data: list.map((knob) => short(knob.key)), ...axis(palette, '', {
        axisTick: { show: false }, axisLabel: { color: palette.text, width: width < 500 ? 120 : 205, overflow: 'truncate' } }) },
      series: [{ type: 'bar', barMaxWidth: 18, color: palette.accent, data: list.map((knob, i) => ({ value: knob.share, knob: i })),
        label: { show: true, position: 'right', color: palette.text, formatter: (point: { value: number }) => percent(point.value) } }],
    };
  },

  rows(study) {
    return {
      head: ['Key', 'Share', 'Value', 'Trials', 'Mean', 'Best'],
      numeric: [false, true, false, true, true, true],
      rows: study.knobs.flatMap((knob) => knob.values.map((value) => [knob.key, percent(knob.share), json(value.value), value.trials,
        metric(study.study.metric, value.mean), metric(study.study.metric, value.best)])),
    };
  },
};

// The server's studies side by side: a table, and the best so far of each in one chart.
import type { ChartKind } from './chart';
import { Figure, axis, legend, tooltip } from './chart';
import type { Listed, Study } from './data';
import type { Child } from './dom';
import { h, replace, scrolling, table } from './dom';
import { deviceHours, duration, metric, metricName, twoDigits } from './format';
import { statusPill } from './sections/result';

const readable = (studies: Listed[]): Listed[] => studies.filter((study) => study.error === null);

// The chart is of several studies; it comes in through the same door as those of one.
function comparison(studies: () => Listed[]): ChartKind {
  const shown = () => readable(studies()).filter((study) => study.metric === readable(studies())[0]?.metric && study.best_path.length > 0);
  return {
    id: 'comparison', title: 'Best so far of each study',
    shows: () => shown().length > 1,
    summary: () => shown().map((study) => `${study.name}: ${metric(study.metric, study.best)} after ${study.started} trials`).join('; ') + '.',
    option: (_study, palette) => {
      const name = shown()[0]!.metric;
      return {
        grid: { left: 78, right: 16, top: 36, bottom: 48 }, legend: legend(palette),
        tooltip: tooltip(palette, (point: { told: string }) => [point?.told ?? '']),
        xAxis: { type: 'value', minInterval: 1, ...axis(palette, 'trial', { splitLine: { show: false } }) },
        yAxis: { type: 'value', scale: true, ...axis(palette, metricName(name), { nameGap: 62, axisLabel: { color: palette.faint, formatter: (value: number) => metric(name, value) } }) },
        series: shown().map((study) => ({ name: `${study.id}: ${study.name}`, type: 'line', step: 'end', symbolSize: 6,
          data: [...study.best_path.map((step) => ({ value: [step.trial, step.value], told: `${study.name}, trial ${step.trial}: ${metric(name, step.value)}` })),
            { value: [study.started, study.best_path.at(-1)!.value], told: study.name, symbol: 'none' }] })),
      };
    },
    rows: () => ({ head: ['Study', 'Trial', 'Best so far'], numeric: [false, true, true],
      rows: shown().flatMap((study) => study.best_path.map((step) => [study.name, step.trial, metric(study.metric, step.value)])) }),
  };
}

export class StudiesView {
  readonly element = h('section', { id: 'studies', 'aria-labelledby': 'studies-title' });
  private list: Listed[] = [];
  private readonly cells = h('div');
  private readonly figure = new Figure(comparison(() => this.list), () => {});

  constructor(private readonly choose: (id: number) => void) {
    replace(this.element, h('h2', { id: 'studies-title' }, 'Studies side by side'), this.cells, this.figure.element);
  }

  update(list: Listed[], chosen: number): void {
    this.list = list;
    this.element.hidden = list.length < 2;
    const row = (study: Listed): Child[] => [
      h('button', { type: 'button', 'aria-pressed': String(study.id === chosen), click: () => this.choose(study.id) }, study.name || study.dir),
      ...(study.error !== null ? [h('span', { class: 'outcome failed' }, study.error), '–', '–', '–', '–', '–'] : [
        statusPill(study.status), `${study.started} of ${study.max_trials}`, metric(study.metric, study.best),
        study.gain === null ? '–' : `${twoDigits(study.gain)} ×`, deviceHours(study.spent_device_hours), duration(study.elapsed_seconds)]),
    ];
    replace(this.cells, scrolling('Studies', table('Studies', ['Study', 'Status', 'Trials', 'Best', 'Gain', 'Spent', 'Time'], list.map(row),
      [false, false, true, true, true, true, true])));
    this.figure.update({} as Study);
  }

  redraw(all = false): void { this.figure.redraw(all); }
}

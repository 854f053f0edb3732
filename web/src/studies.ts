// The server's studies side by side: a table, and a chart with the best so far of each.
import type { ChartKind } from './chart';
import { Figure, axis, legend, tooltip } from './chart';
import type { Listed, Study } from './data';
import { arrange, h, replace, scrolling, table } from './dom';
import { deviceHours, duration, metric, metricName, plural, twoDigits } from './format';
import { statusPill } from './sections/result';

const readable = (studies: Listed[]): Listed[] => studies.filter((study) => study.error === null);

// A chart of several studies, in the form of a chart of one study.
function comparison(studies: () => Listed[]): ChartKind {
  const shown = () => readable(studies()).filter((study) => study.metric === readable(studies())[0]?.metric && study.best_path.length > 0);
  return {
    id: 'comparison', title: 'Best so far of each study',
    shows: () => shown().length > 1,
    summary: () => 'A line is the best single measurement so far; the table has the mean of the best configuration, which can be worse. ' +
      shown().map((study) => `${study.name}: ${metric(study.metric, study.best_path.at(-1)!.value)} after ` +
        `${study.best_path.at(-1)!.ended} of ${plural(study.ended, 'ended trial')}`).join('; ') + '.',
    option: (_study, palette) => {
      const name = shown()[0]!.metric;
      return {
        grid: { left: 78, right: 16, top: 36, bottom: 48 }, legend: legend(palette),
        tooltip: tooltip(palette, (point: { text: string }) => [point?.text ?? '']),
        xAxis: { type: 'value', minInterval: 1, ...axis(palette, 'trials that have ended', { splitLine: { show: false } }) },
        yAxis: { type: 'value', scale: true, ...axis(palette, metricName(name), { nameGap: 62, axisLabel: { color: palette.faint, formatter: (value: number) => metric(name, value) } }) },
        series: shown().map((study) => ({ name: `${study.id}: ${study.name}`, type: 'line', step: 'end', symbolSize: 6,
          data: [...study.best_path.map((step) => ({ value: [step.ended, step.value], text: `${study.name}, trial ${step.trial}: ${metric(name, step.value)}` })),
            { value: [study.ended, study.best_path.at(-1)!.value], text: study.name, symbol: 'none' }] })),
      };
    },
    rows: () => ({ head: ['Study', 'Trials ended', 'Trial', 'Best so far'], numeric: [false, true, true, true],
      rows: shown().flatMap((study) => study.best_path.map((step) => [study.name, step.ended, step.trial, metric(study.metric, step.value)])) }),
  };
}

const kHead = ['Study', 'Status', 'Trials', 'Best', 'Gain', 'Spent', 'Time'];
const kNumeric = [false, false, true, true, true, true, true];

interface Row { element: HTMLElement; button: HTMLButtonElement; key: string }

export class StudiesView {
  readonly element = h('section', { id: 'studies', 'aria-labelledby': 'studies-title' });
  private list: Listed[] = [];
  private readonly table = table('Studies', kHead, [], kNumeric);
  private readonly rows = new Map<number, Row>();
  private readonly figure = new Figure(comparison(() => this.list), () => {});

  constructor(private readonly choose: (id: number) => void) {
    replace(this.element, h('h2', { id: 'studies-title' }, 'Studies side by side'), scrolling('Studies', this.table), this.figure.element);
  }

  update(list: Listed[], chosen: number): void {
    this.list = list;
    this.element.hidden = list.length < 2;
    arrange(this.table.tBodies[0]!, list.map((study) => this.row(study, study.id === chosen)));
    this.figure.update({} as Study);
  }

  redraw(all = false): void { this.figure.redraw(all); }

  // A study's row and button stay the same elements, because somebody may be clicking on them.
  private row(study: Listed, isChosen: boolean): HTMLElement {
    const row = this.rows.get(study.id) ?? this.newRow(study.id);
    row.button.setAttribute('aria-pressed', String(isChosen));
    const key = JSON.stringify({ ...study, best_path: null });
    if (row.key === key) return row.element;
    row.key = key;
    row.button.textContent = study.name || study.dir;
    const cells = study.error !== null ? [h('span', { class: 'outcome failed' }, study.error), '–', '–', '–', '–', '–'] : [
      statusPill(study.status), `${study.started} of ${study.max_trials}`, metric(study.metric, study.best),
      study.gain === null ? '–' : `${twoDigits(study.gain)} ×`, deviceHours(study.spent_device_hours), duration(study.elapsed_seconds)];
    arrange(row.element, [row.element.firstElementChild!, ...cells.map((cell, i) => h('td', { class: kNumeric[i + 1] ? 'number' : null }, cell))]);
    return row.element;
  }

  private newRow(id: number): Row {
    const button = h('button', { type: 'button', click: () => this.choose(id) });
    const row = { element: h('tr', {}, h('th', { scope: 'row' }, button)), button, key: '' };
    this.rows.set(id, row);
    return row;
  }
}

// A chart in its figure: drawn when it comes into view, described in words, and shown as a table on demand.
import { BarChart, CustomChart, LineChart, ScatterChart } from 'echarts/charts';
import { DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, TooltipComponent } from 'echarts/components';
import type { ECharts, EChartsCoreOption } from 'echarts/core';
import { init, use } from 'echarts/core';
import { CanvasRenderer } from 'echarts/renderers';

import type { Study } from './data';
import { h, replace, scrolling, table } from './dom';
import type { Child } from './dom';
import type { Colours } from './theme';
import { colours } from './theme';

use([BarChart, CustomChart, LineChart, ScatterChart, DataZoomComponent, GridComponent, LegendComponent,
  MarkLineComponent, TooltipComponent, CanvasRenderer]);

export interface ChartKind {
  id: string;
  title: string;
  // Does the study have data for this chart?
  shows(study: Study): boolean;
  // The message of the chart, in a sentence or two.
  summary(study: Study): string;
  option(study: Study, colours: Colours, width: number): EChartsCoreOption;
  rows(study: Study): { head: string[]; rows: Child[][]; numeric?: boolean[] };
  height?(study: Study): number;
}

const kMostRows = 1000;

type Formatter = (point: { data: never }) => Node | string;
interface Zoom { start?: number; end?: number }
type Drawing = EChartsCoreOption & { tooltip?: { formatter?: Formatter }; dataZoom?: Zoom[] };

// All parts but legend and tooltip: new data must not change what the reader has switched off or is reading.
const kReplaced = ['grid', 'xAxis', 'yAxis', 'dataZoom', 'series'];

// The zoom stays, too.
function keepZoom(option: Drawing, before: EChartsCoreOption | undefined): void {
  const zooms = (before?.['dataZoom'] ?? []) as Zoom[];
  option.dataZoom = option.dataZoom?.map((zoom, i) => ({ ...zoom, start: zooms[i]?.start, end: zooms[i]?.end }));
}

export class Figure {
  readonly element: HTMLElement;
  private readonly words = h('p', { class: 'summary' });
  private readonly canvas = h('div', { class: 'canvas', role: 'img' });
  private readonly details = h('details', { toggle: () => this.fillTable() }, h('summary', {}, 'Show as a table'));
  private readonly cells = h('div');
  private chart: ECharts | null = null;
  private study: Study | null = null;
  private drawn = { dir: '', key: '' };
  private formatter: Formatter = () => '';
  private visible = false;

  constructor(readonly kind: ChartKind, private readonly open: (trial: number) => void) {
    this.details.append(this.cells);
    this.element = h('figure', { id: `chart-${kind.id}`, class: 'chart' },
      h('figcaption', {}, h('h3', {}, kind.title), this.words), this.canvas, this.details);
    new IntersectionObserver((entries) => {
      this.visible = entries.some((entry) => entry.isIntersecting);
      if (this.visible) this.draw();
    }, { rootMargin: '300px' }).observe(this.element);
    new ResizeObserver(() => { if (this.chart) { this.chart.resize(); this.draw(); } }).observe(this.canvas);
  }

  update(study: Study): void {
    this.study = study;
    this.element.hidden = !this.kind.shows(study);
    if (this.element.hidden) return;
    const summary = this.kind.summary(study);
    this.words.textContent = summary;
    this.canvas.setAttribute('aria-label', `Chart: ${this.kind.title}. ${summary}`);
    const height = `${this.kind.height?.(study) ?? 320}px`;
    if (this.canvas.style.height !== height) {
      this.canvas.style.height = height;
      this.chart?.resize();
    }
    this.fillTable();
    if (this.visible) this.draw();
  }

  // Draws again after a change of colours or, with `all`, for printing. A figure out of sight is drawn when it comes
  // into view.
  redraw(all: boolean): void {
    if (all || this.visible) this.draw();
  }

  private draw(): void {
    if (!this.study || this.element.hidden || this.canvas.clientWidth === 0) return;
    if (!this.chart) {
      this.chart = init(this.canvas);
      this.chart.on('click', (event) => {
        const trial = (event.data as { trial?: number } | undefined)?.trial;
        if (trial !== undefined) this.open(trial);
      });
    }
    const palette = colours(), width = this.canvas.clientWidth, dir = this.study.study?.dir ?? '';
    const option: Drawing = { ...base(palette), ...this.kind.option(this.study, palette, width) };
    // The tooltip uses the newest study, even if the chart has not changed.
    this.formatter = option.tooltip?.formatter ?? this.formatter;
    const key = JSON.stringify([width, dir, option]);
    if (key === this.drawn.key) return;
    if (option.tooltip) option.tooltip = { ...option.tooltip, formatter: (point) => this.formatter(point) };
    const isSame = this.drawn.key !== '' && dir === this.drawn.dir;
    this.drawn = { dir, key };
    if (isSame) keepZoom(option, this.chart.getOption());
    this.chart.setOption(option, isSame ? { replaceMerge: kReplaced } : { notMerge: true });
  }

  private fillTable(): void {
    if (!this.details.open || !this.study) return;
    const { head, rows, numeric } = this.kind.rows(this.study);
    replace(this.cells,
      scrolling(`${this.kind.title}, as a table`, table(this.kind.title, head, rows.slice(0, kMostRows), numeric)),
      rows.length > kMostRows && h('p', { class: 'faint' }, `The first ${kMostRows} of ${rows.length} rows; all trials are in the table below.`));
  }
}

function base(palette: Colours): EChartsCoreOption {
  return {
    animation: false,
    textStyle: { color: palette.text, fontFamily: 'inherit' },
    color: palette.stages,
  };
}

export function axis(palette: Colours, name: string, more: object = {}): object {
  return {
    name, nameLocation: 'middle', nameGap: 30,
    nameTextStyle: { color: palette.faint },
    axisLine: { lineStyle: { color: palette.line } },
    axisLabel: { color: palette.faint, hideOverlap: true },
    splitLine: { lineStyle: { color: palette.line, opacity: 0.6 } },
    ...more,
  };
}

export function legend(palette: Colours, more: object = {}): object {
  return { top: 0, left: 0, type: 'scroll', textStyle: { color: palette.text }, pageTextStyle: { color: palette.faint },
    pageIconColor: palette.faint, itemWidth: 14, ...more };
}

// Lines of text beside the pointer, as text nodes, so that a trial's note is never read as HTML.
export function tooltip(palette: Colours, lines: (data: never) => (string | null)[]): object {
  return {
    trigger: 'item', confine: true, backgroundColor: palette.card, borderColor: palette.line,
    textStyle: { color: palette.text, fontSize: 13 },
    formatter: (point: { data: never }) =>
      h('div', { class: 'tip' }, lines(point.data).filter(Boolean).map((line, i) => h(i === 0 ? 'strong' : 'div', {}, line))),
  };
}

// One study on the page: sections and charts, filled again when the study changes.
import type { ChartKind } from './chart';
import { Figure } from './chart';
import { curve } from './charts/curve';
import { knobs } from './charts/knobs';
import { memory } from './charts/memory';
import { microBatch } from './charts/micro_batch';
import { path } from './charts/path';
import { belief, intervals, ladder } from './charts/searcher';
import { timeline } from './charts/timeline';
import type { Study } from './data';
import { h, replace } from './dom';
import { again } from './sections/again';
import { best } from './sections/best';
import { head, result, stages } from './sections/result';
import { TrialTable } from './sections/trials';

const kCharts: ChartKind[] = [path, microBatch, memory, ladder, intervals, belief, timeline, curve, knobs];

export class StudyView {
  readonly element: HTMLElement;
  private readonly trials = new TrialTable();
  private readonly figures = kCharts.map((kind) => new Figure(kind, (trial) => this.trials.open(trial)));
  private readonly parts = { head: h('header'), result: h('section', { 'aria-label': 'Result' }), best: h('section'),
    stages: h('section'), again: h('section') };
  private readonly drawn = new Map<Element, string>();

  constructor() {
    this.element = h('main', { id: 'study' }, this.parts.head, this.parts.result, this.parts.best, this.parts.stages,
      h('section', { 'aria-label': 'Charts' }, h('h2', { id: 'charts' }, 'Charts'), h('div', { class: 'charts' }, this.figures.map((figure) => figure.element))),
      this.trials.element, this.parts.again);
    this.element.addEventListener('click', (event) => {
      const link = (event.target as Element).closest('a[href^="#trial-"]');
      if (!link) return;
      event.preventDefault();
      this.trials.open(Number(link.getAttribute('href')!.slice('#trial-'.length)));
    });
  }

  update(study: Study): void {
    this.fill(this.parts.head, study, () => head(study), [study.study, study.progress.started_at]);
    this.fill(this.parts.result, study, () => result(study), [study.study.best, study.study.gain, study.baseline, study.progress, study.payback]);
    this.fill(this.parts.best, study, () => best(study), [study.study.best, study.changes]);
    this.fill(this.parts.stages, study, () => stages(study), study.stages);
    this.fill(this.parts.again, study, () => again(study), [study.plan, study.study.best !== null]);
    for (const figure of this.figures) figure.update(study);
    this.fillRows();
    this.trials.update(study);
  }

  redraw(all = false): void {
    for (const figure of this.figures) figure.redraw(all);
  }

  // Charts stand in pairs. The last of an odd number gets a whole row, and so does the timeline.
  private fillRows(): void {
    const shown = this.figures.filter((figure) => !figure.element.hidden && figure.kind !== timeline);
    shown.forEach((figure, i) => figure.element.classList.toggle('wide', i + 1 === shown.length && shown.length % 2 === 1));
  }

  // A part that has not changed stays, so that opened details and selections stay.
  private fill(part: HTMLElement, study: Study, content: () => Parameters<typeof replace>[1], of: unknown): void {
    const text = JSON.stringify([of, study.study.status]);
    if (this.drawn.get(part) === text) return;
    this.drawn.set(part, text);
    replace(part, content());
  }
}

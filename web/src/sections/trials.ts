// The table of all trials, in pages: sorted by any column, filtered by words, outcome, stage and phase. A row opens to
// show details.
import type { Json, JsonObject, Study, Trial } from '../data';
import type { Child } from '../dom';
import { arrange, h, replace, scrolling, table } from '../dom';
import { bytes, duration, json, metric, orDash, outcomeOf, plural, when, words } from '../format';
import { slotText } from '../charts/timeline';
import { copyButton } from './best';
import { quoted } from './again';

const kRowsOfPage = 50;

interface Column { name: string; numeric: boolean; of(trial: Trial): number | string | null; text(trial: Trial, study: Study): Child }

const kColumns: Column[] = [
  { name: 'Trial', numeric: true, of: (t) => t.id, text: (t) => t.id },
  { name: 'Phase', numeric: false, of: (t) => t.phase, text: (t) => (t.kind === 'duplicate' ? `as trial ${t.duplicate_of}` : t.kind === 'repeat' ? `${words(t.phase)}, repeat` : words(t.phase)) },
  { name: 'Stage', numeric: true, of: (t) => t.stage, text: (t) => t.stage },
  { name: 'Micro batch', numeric: true, of: (t) => t.micro_batch, text: (t) => orDash(t.micro_batch) },
  { name: 'Outcome', numeric: false, of: (t) => outcomeOf(t), text: (t) => h('span', { class: `outcome ${t.outcome ?? t.place}` }, outcomeOf(t)) },
  { name: 'Metric', numeric: true, of: (t) => t.value, text: (t, s) => metric(s.study.metric, t.value) },
  { name: 'Peak memory', numeric: true, of: (t) => t.peak_bytes, text: (t) => bytes(t.peak_bytes) },
  { name: 'Ran', numeric: true, of: (t) => t.run_seconds, text: (t) => duration(t.run_seconds) },
  { name: 'Note', numeric: false, of: (t) => t.note, text: (t) => h('span', { class: 'note' }, t.reason || t.note) },
];

export class TrialTable {
  readonly element = h('section', { id: 'trials', 'aria-labelledby': 'trials-title' });
  private study: Study | null = null;
  private sortBy = 0;
  private descending = false;
  private page = 0;
  private readonly opened = new Set<number>();
  private readonly words = h('input', { type: 'search', id: 'filter-words', placeholder: 'any text: a key, a note, an id', input: () => this.filtered() });
  private readonly outcome = h('select', { id: 'filter-outcome', change: () => this.filtered() });
  private readonly stage = h('select', { id: 'filter-stage', change: () => this.filtered() });
  private readonly phase = h('select', { id: 'filter-phase', change: () => this.filtered() });
  private readonly countLine = h('p', { class: 'faint', role: 'status', id: 'trials-count' });
  private readonly heads: HTMLButtonElement[];
  private readonly headCells: HTMLTableCellElement[];
  private readonly body = h('tbody');
  private readonly pages = h('nav', { class: 'pages', 'aria-label': 'Pages of the table' });
  private rows = new Map<string, { key: string; element: HTMLElement }>();  // of the page drawn last
  private haystacks = new Map<number, { of: Trial; text: string }>();
  private shown: Trial[] = [];

  constructor() {
    this.heads = kColumns.map((column, i) => h('button', { type: 'button', click: () => this.sort(i) }, column.name));
    this.headCells = kColumns.map((column, i) => h('th', { scope: 'col', class: column.numeric ? 'number' : null }, this.heads[i]!));
    const label = (text: string, input: HTMLElement) => h('label', {}, text, input);
    replace(this.element,
      h('h2', { id: 'trials-title' }, 'All trials'),
      h('div', { class: 'filters', role: 'search' }, label('Find', this.words), label('Outcome', this.outcome), label('Stage', this.stage), label('Phase', this.phase)),
      this.countLine,
      scrolling('All trials', h('table', { class: 'trials' }, h('caption', { class: 'hidden' }, 'All trials; a button in a column’s head sorts by it, the button of a row opens it'),
        h('thead', {}, h('tr', {}, this.headCells)), this.body)),
      this.pages);
  }

  update(study: Study): void {
    this.study = study;
    this.headCells[5]!.firstChild!.textContent = study.study.metric;
    this.choices(this.outcome, study.trials.map(outcomeOf));
    this.choices(this.stage, study.trials.map((trial) => String(trial.stage)));
    this.choices(this.phase, study.trials.map((trial) => words(trial.phase)));
    this.refresh();
  }

  // Opens a trial and scrolls to it; filters that hide it are cleared.
  open(id: number): void {
    const trial = this.study?.trials[id];
    if (!trial) return;
    if (!this.shown.includes(trial)) {
      for (const select of [this.outcome, this.stage, this.phase]) select.value = '';
      this.words.value = '';
      this.refresh();
    }
    this.opened.add(id);
    this.page = Math.max(0, Math.floor(this.shown.indexOf(trial) / kRowsOfPage));
    this.draw();
    const row = document.getElementById(`trial-${id}`);
    row?.scrollIntoView({ block: 'center' });
    row?.querySelector('button')?.focus({ preventScroll: true });
  }

  private choices(select: HTMLSelectElement, values: string[]): void {
    const wanted = ['', ...[...new Set(values)].sort()];
    if (wanted.join('\n') === [...select.options].map((option) => option.value).join('\n')) return;
    const kept = select.value;
    replace(select, wanted.map((value) => h('option', { value }, value || 'all')));
    select.value = wanted.includes(kept) ? kept : '';
  }

  private sort(column: number): void {
    this.descending = this.sortBy === column ? !this.descending : kColumns[column]!.name === 'Metric' && this.study?.study.direction !== 'minimize';
    this.sortBy = column;
    this.page = 0;
    this.refresh();
  }

  private filtered(): void {
    this.page = 0;
    this.refresh();
  }

  private haystack(trial: Trial): string {
    const known = this.haystacks.get(trial.id);
    if (known?.of === trial) return known.text;
    const text = `trial ${trial.id} ${trial.note} ${trial.reason} ${outcomeOf(trial)} ${JSON.stringify(trial.overrides)} ${trial.slots.join(' ')}`.toLowerCase();
    this.haystacks.set(trial.id, { of: trial, text });
    return text;
  }

  private refresh(): void {
    if (!this.study) return;
    const wanted = this.words.value.toLowerCase().split(/\s+/).filter(Boolean);
    this.shown = this.study.trials.filter((trial) =>
      (!this.outcome.value || outcomeOf(trial) === this.outcome.value) && (!this.stage.value || String(trial.stage) === this.stage.value) &&
      (!this.phase.value || words(trial.phase) === this.phase.value) && wanted.every((word) => this.haystack(trial).includes(word)));
    const column = kColumns[this.sortBy]!, sign = this.descending ? -1 : 1;
    this.shown.sort((a, b) => {
      const x = column.of(a), y = column.of(b);
      if (x === y) return a.id - b.id;
      if (x === null || x === '') return 1;  // a trial without a value comes last in both orders
      if (y === null || y === '') return -1;
      return sign * (typeof x === 'number' && typeof y === 'number' ? x - y : String(x).localeCompare(String(y)));
    });
    this.page = Math.min(this.page, Math.max(0, Math.ceil(this.shown.length / kRowsOfPage) - 1));
    this.draw();
  }

  private draw(): void {
    const study = this.study!;
    this.headCells.forEach((cell, i) => {
      if (i === this.sortBy) cell.setAttribute('aria-sort', this.descending ? 'descending' : 'ascending');
      else cell.removeAttribute('aria-sort');
    });
    this.countLine.textContent = this.shown.length === study.trials.length ? `${plural(study.trials.length, 'trial')}.` : `${this.shown.length} of ${plural(study.trials.length, 'trial')}.`;
    const focused = document.activeElement?.closest('tr')?.id;
    const from = this.page * kRowsOfPage;
    const old = this.rows;
    this.rows = new Map();
    const rows = this.shown.slice(from, from + kRowsOfPage).flatMap((trial) => this.rowsOf(trial, old));
    arrange(this.body, rows.length > 0 ? rows :
      [h('tr', {}, h('td', { colspan: kColumns.length, class: 'faint' }, study.trials.length === 0 ? 'No trial yet.' : 'No trial matches the filters.'))]);
    if (focused && document.activeElement === document.body) document.getElementById(focused)?.querySelector('button')?.focus({ preventScroll: true });
    this.drawPages();
  }

  // An unchanged row stays the same element, because somebody may be reading or selecting it.
  private rowsOf(trial: Trial, old: typeof this.rows): HTMLElement[] {
    const study = this.study!, isOpen = this.opened.has(trial.id), best = trial.id === study.study.best?.trial;
    const kept = (name: string, of: unknown[], make: () => HTMLElement): HTMLElement => {
      const key = JSON.stringify([study.study.dir, ...of]), known = old.get(name);
      const row = known?.key === key ? known : { key, element: make() };
      this.rows.set(name, row);
      return row.element;
    };
    // The estimate changes after every trial, and the time while the trial runs.
    const row = kept(`trial-${trial.id}`, [{ ...trial, peak_estimate: null }, best, isOpen], () => this.row(trial, isOpen, best));
    if (!isOpen) return [row];
    const opened = kept(`details-${trial.id}`, [{ ...trial, peak_estimate: null, run_seconds: null }], () =>
      h('tr', { id: `details-${trial.id}`, class: 'details' }, h('td', { colspan: kColumns.length }, details(trial, study))));
    opened.querySelector('.estimate')!.textContent = estimate(trial);
    return [row, opened];
  }

  private row(trial: Trial, isOpen: boolean, best: boolean): HTMLElement {
    const toggle = h('button', { type: 'button', 'aria-expanded': String(isOpen), 'aria-controls': `details-${trial.id}`, 'aria-label': `Trial ${trial.id}: details`,
      click: () => { if (isOpen) this.opened.delete(trial.id); else this.opened.add(trial.id); this.draw(); } }, isOpen ? '▾' : '▸', ` ${trial.id}`);
    return h('tr', { id: `trial-${trial.id}`, class: best ? 'best' : null }, kColumns.map((column, i) => i === 0
      ? h('th', { scope: 'row', class: 'number' }, toggle, best && h('span', { class: 'hidden' }, ' the best'))
      : h('td', { class: column.numeric ? 'number' : null }, column.text(trial, this.study!))));
  }

  private drawPages(): void {
    const count = Math.ceil(this.shown.length / kRowsOfPage);
    const go = (page: number, text: string, off: boolean) =>
      h('button', { type: 'button', disabled: off, click: () => { this.page = page; this.draw(); } }, text);
    replace(this.pages, count > 1 && [
      go(0, 'First', this.page === 0), go(this.page - 1, 'Previous', this.page === 0),
      h('span', {}, `Rows ${this.page * kRowsOfPage + 1} to ${Math.min(this.shown.length, (this.page + 1) * kRowsOfPage)} of ${this.shown.length}`),
      go(this.page + 1, 'Next', this.page === count - 1), go(count - 1, 'Last', this.page === count - 1)]);
  }
}

function block(title: string, text: string): Child {
  return text ? [h('h4', {}, title), h('pre', { tabindex: 0 }, text)] : null;
}

function leaves(value: Json, prefix = ''): [string, Json][] {
  if (value === null || typeof value !== 'object' || Array.isArray(value)) return [[prefix, value]];
  return Object.entries(value).flatMap(([key, inner]) => leaves(inner, prefix ? `${prefix}.${key}` : key));
}

function estimate(trial: Trial): string {
  const peak = trial.peak_estimate;
  return peak === null ? '–' : `${bytes(peak.value)} (${bytes(peak.low)} to ${bytes(peak.high)})`;
}

function details(trial: Trial, study: Study): Child {
  const facts: Child[][] = [
    ['Submitted', when(trial.submitted_at)], ['Started', when(trial.started_at)], ['Ended', when(trial.ended_at)],
    ['Slots', slotText(trial)], ['Attempt', trial.attempt], ['Parent', orDash(trial.parent)],
    ['Global batch', orDash(trial.train_batch)], ['Accumulation', orDash(trial.accumulation)],
    ['Peak memory', trial.peak_bytes === null ? '–' : `${bytes(trial.peak_bytes)}${trial.peak_source ? ` (from ${trial.peak_source})` : ''}`],
    ['Estimated peak', h('span', { class: 'estimate' })],
    ['Exit', trial.term_signal !== null ? `signal ${trial.term_signal}` : orDash(trial.exit_code)],
    ['Versions', [trial.engine_version && `DeepSpeed ${trial.engine_version}`, trial.torch_version && `torch ${trial.torch_version}`, trial.driver_version && `driver ${trial.driver_version}`].filter(Boolean).join(', ') || '–'],
  ];
  const config = JSON.stringify(trial.config, null, 2);
  const folder = `${study.study.dir}/trials/${trial.id}`;
  const again = study.plan['runner'] === 'sim' ? '' : `sh ${quoted(`${folder}/cmd.txt`)}  # configuration: ${quoted(`${folder}/ds_config.json`)}`;
  const metrics = Object.entries((trial.metrics ?? {}) as JsonObject);
  return h('div', { class: 'detail' },
    trial.note ? h('p', {}, h('strong', {}, 'Note of the searcher: '), trial.note) : null,
    trial.reason ? h('p', {}, h('strong', {}, 'Reason of the outcome: '), trial.reason) : null,
    trial.warnings.map((warning) => h('p', { class: 'notice warn' }, warning)),
    h('div', { class: 'columns' },
      h('div', {}, h('h4', {}, 'Facts'), table(`Facts of trial ${trial.id}`, ['Fact', 'Value'], facts)),
      metrics.length > 0 && h('div', {}, h('h4', {}, 'Metrics'), table(`Metrics of trial ${trial.id}`, ['Metric', 'Value'], metrics.map(([key, value]) => [key, json(value)]), [false, true])),
      h('div', {}, h('h4', {}, 'Keys that the searcher set'), table(`Overrides of trial ${trial.id}`, ['Key', 'Value'], leaves(trial.overrides ?? {}).filter(([key]) => key !== '').map(([key, value]) => [key, json(value)])))),
    block('Last lines of its standard error', trial.stderr_tail.join('\n')),
    again ? [h('h4', {}, 'Run it again'), h('div', { class: 'code' }, copyButton(() => again, 'the command'), h('pre', { tabindex: 0 }, again))] : null,
    h('details', {}, h('summary', {}, 'The whole configuration'), h('div', { class: 'code' }, copyButton(() => config, 'the configuration'), h('pre', { tabindex: 0 }, config))));
}

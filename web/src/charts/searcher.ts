// Charts from the notes that a searcher writes for its trials: lineages and rungs (asha), intervals (binary search),
// and the prediction before each trial (guided). A searcher that writes other notes has none of these charts.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { JsonObject, Outcome, Study, Trial } from '../data';
import { metric, metricName, outcomeOf, percent, plural } from '../format';
import { cross, plus } from './path';
import { describe, extent } from './trials';
import { stageShapes } from '../theme';

interface Lineage { number: number; stage: number; trials: Trial[] }

export function lineages(study: Study): Lineage[] {
  const found = new Map<number, Lineage>();
  for (const trial of study.trials) {
    const match = /of stage (\d), lineage (\d+)/.exec(trial.note);
    if (!match || trial.phase !== 'searcher') continue;
    const number = Number(match[2]);
    const lineage = found.get(number) ?? { number, stage: Number(match[1]), trials: [] };
    lineage.trials.push(trial);
    found.set(number, lineage);
  }
  return [...found.values()].sort((a, b) => a.number - b.number);
}

function searcher(study: Study): { name: string; options: JsonObject } {
  const plan = study.plan['searcher'] as JsonObject | undefined;
  return { name: String(plan?.['name'] ?? ''), options: (plan?.['options'] ?? {}) as JsonObject };
}

const better = (study: Study, a: number, b: number): boolean => study.study.direction === 'minimize' ? a < b : a > b;
const resultOf = (study: Study, trial: Trial): number | null =>
  trial.value ?? (trial.duplicate_of === null ? null : study.trials[trial.duplicate_of]?.value ?? null);

// The best value of a lineage after each of its trials.
function climb(study: Study, lineage: Lineage): (number | null)[] {
  let best: number | null = null;
  return lineage.trials.map((trial) => {
    const value = resultOf(study, trial);
    if (value !== null && (best === null || better(study, value, best))) best = value;
    return best;
  });
}

// The number of trials at which each rung of asha ends.
export function rungs(study: Study): number[] {
  const { name, options } = searcher(study);
  if (name !== 'asha') return [];
  const least = Number(options['min-binary-search-trials'] ?? 3), divisor = Number(options['divisor'] ?? 2);
  const granted = Number(options['asha-early-stopping'] ?? 0), most = Number(options['max-rungs'] ?? 5);
  return Array.from({ length: most }, (_, rung) => least * divisor ** (granted + rung));
}

const rungOf = (limits: number[], trials: number): number => {
  const rung = limits.findIndex((limit) => trials <= limit);
  return rung < 0 ? limits.length - 1 : rung;
};

export const ladder: ChartKind = {
  id: 'ladder',
  title: 'Lineages and rungs',
  shows: (study) => searcher(study).name === 'asha' && lineages(study).length > 0,

  summary(study) {
    const all = lineages(study), limits = rungs(study);
    const reached = limits.map((_, rung) => all.filter((lineage) => rungOf(limits, lineage.trials.length) >= rung).length);
    const reachedText = reached.filter((n) => n > 0).map((n, rung) => `${n} reached rung ${rung}`).join(', ');
    return `${plural(all.length, 'lineage')} (one configuration each, with the search for its micro batch): ${reachedText}. ` +
      `A line is the best of a lineage so far; rungs end after ${limits.filter((_, i) => reached[i]! > 0).join(', ')} trials.`;
  },

  option(study, palette) {
    const all = lineages(study), limits = rungs(study);
    const longest = Math.max(...all.map((lineage) => lineage.trials.length));
    const best = study.study.best?.trial;
    const range = extent(all.flatMap((lineage) => climb(study, lineage).flatMap((value) => value ?? [])));
    return {
      grid: { left: 78, right: 20, top: 40, bottom: 48 },
      tooltip: tooltip(palette, (point: { trial: number; lineage: number }) => point ? [`Lineage ${point.lineage}`, ...describe(study, point.trial)] : []),
      xAxis: { type: 'value', min: 0.5, max: Math.max(longest + 0.5, (limits[0] ?? 1) + 0.6), minInterval: 1, ...axis(palette, 'trials of the lineage', {
        splitLine: { show: false }, axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false } }) },
      yAxis: { type: 'value', min: range.low, max: range.high, ...axis(palette, metricName(study.study.metric), { nameGap: 62,
        axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false, formatter: (value: number) => value < 0 ? '' : metric(study.study.metric, value) } }) },
      series: [
        { type: 'line', data: [], markLine: { silent: true, symbol: 'none', lineStyle: { color: palette.faint, type: 'dotted' },
          data: limits.filter((limit) => limit <= longest + 1).map((limit, rung) => ({ xAxis: limit + 0.5, label: { formatter: `rung ${rung}`, color: palette.faint, position: 'end' } })) } },
        ...all.slice(0, 400).map((lineage) => {
          const wins = lineage.trials.some((trial) => trial.id === best || trial.duplicate_of === best);
          const reached = climb(study, lineage);
          return {
            type: 'line', name: `lineage ${lineage.number}`, color: palette.stages[lineage.stage], z: wins ? 4 : 2,
            symbol: stageShapes[lineage.stage], symbolSize: wins ? 9 : 6, showAllSymbol: true,
            lineStyle: { width: wins ? 3.5 : 1.2, opacity: wins ? 1 : 0.55 }, itemStyle: { opacity: wins ? 1 : 0.7 },
            data: lineage.trials.map((trial, i) => ({ value: [i + 1, reached[i] ?? range.none], trial: trial.id, lineage: lineage.number,
              ...(reached[i] === null ? { symbol: cross, itemStyle: { color: palette.bad } } : {}) })),
          };
        }),
      ],
    };
  },

  rows(study) {
    const limits = rungs(study);
    return {
      head: ['Lineage', 'Stage', 'Trials', 'Rung', 'Best', 'Trials in order'],
      numeric: [true, true, true, true, true, false],
      rows: lineages(study).map((lineage) => [lineage.number, lineage.stage, lineage.trials.length, rungOf(limits, lineage.trials.length),
        metric(study.study.metric, climb(study, lineage).at(-1) ?? null), lineage.trials.map((trial) => trial.id).join(', ')]),
    };
  },
};

interface Search { trial: Trial; low: number; high: number }

function searches(study: Study): Search[] {
  return study.trials.flatMap((trial) => {
    const match = /(?:binary search in|the middle of|below a failure in) \[(\d+), (\d+)\]/.exec(trial.note);
    return match ? [{ trial, low: Number(match[1]), high: Number(match[2]) }] : [];
  });
}

export const intervals: ChartKind = {
  id: 'intervals',
  title: 'Intervals of the binary search',
  shows: (study) => searches(study).length > 0,

  summary(study) {
    const all = searches(study);
    const last = new Map(all.map((search) => [/lineage (\d+)/.exec(search.trial.note)?.[1] ?? '', search]));
    const widest = Math.max(...all.map((search) => search.high - search.low));
    return `${plural(all.length, 'trial')} of ${plural(last.size, 'lineage')} searched an interval of the micro batch, the widest ${widest} wide. ` +
      'A bar is the interval that was still open. The mark in it is the micro batch that was tried: a dot if the trial completed, ' +
      'a cross if it ran out of memory, a plus if it ended in another way.';
  },

  option(study, palette) {
    const all = searches(study);
    const data = all.map((search, i) => ({ value: [i, search.low, search.high, search.trial.micro_batch ?? search.low], trial: search.trial.id }));
    // A trial without an outcome has no mark.
    const marks = (of: (outcome: Outcome) => boolean) => data.filter((_, i) => { const { outcome } = all[i]!.trial; return outcome !== null && of(outcome); })
      .map((d) => ({ value: [d.value[0], d.value[3]], trial: d.trial }));
    return {
      grid: { left: 64, right: 16, top: 36, bottom: all.length > 60 ? 84 : 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (point: { trial: number }) => describe(study, point?.trial)),
      dataZoom: all.length > 60 ? [{ type: 'slider', bottom: 8, height: 18, textStyle: { color: palette.faint } }] : [],
      xAxis: { type: 'category', data: all.map((search) => String(search.trial.id)), ...axis(palette, 'trial', { splitLine: { show: false } }) },
      yAxis: { type: 'value', minInterval: 1, ...axis(palette, 'micro batch', { nameGap: 46 }) },
      series: [
        { name: 'still open', type: 'custom', color: palette.line, encode: { x: 0, y: [1, 2] }, data,
          renderItem: (_: unknown, api: { value(i: number): number; coord(at: number[]): number[]; size(of: number[]): number[] }) => {
            const top = api.coord([api.value(0), api.value(2)]), bottom = api.coord([api.value(0), api.value(1)]);
            const width = Math.max(3, Math.min(20, api.size([1, 0])[0]! * 0.6));
            return { type: 'rect', shape: { x: top[0]! - width / 2, y: top[1]!, width, height: Math.max(2, bottom[1]! - top[1]!), r: 2 },
              style: { fill: palette.line } };
          } },
        { name: 'tried, completed', type: 'scatter', symbolSize: 8, color: palette.good, data: marks((outcome) => outcome === 'completed') },
        { name: 'tried, did not fit', type: 'scatter', symbol: cross, symbolSize: 9, color: palette.bad, data: marks((outcome) => outcome === 'out_of_memory') },
        { name: 'tried, failed', type: 'scatter', symbol: plus, symbolSize: 10, color: palette.warn, data: marks((outcome) => outcome !== 'completed' && outcome !== 'out_of_memory') },
      ].filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    return {
      head: ['Trial', 'Stage', 'From', 'To', 'Tried', 'Outcome'],
      numeric: [true, true, true, true, true, false],
      rows: searches(study).map((search) => [search.trial.id, search.trial.stage, search.low, search.high, search.trial.micro_batch, outcomeOf(search.trial)]),
    };
  },
};

interface Belief { trial: Trial; improvement: number; deviation: number; fits: number; gain: number; actual: number | null; because: string }

// The prediction is relative to the best at the time of the trial's request.
function beliefs(study: Study): Belief[] {
  const ended = study.best_path.map((step) => ({ at: study.trials[step.trial]?.ended_at ?? '', value: step.value }));
  return study.trials.flatMap((trial) => {
    const match = /^(.*): \+?(-?[\d.]+) % \+- ([\d.]+) % against the best, fits with ([\d.]+) %, expected gain ([\d.]+) %/.exec(trial.note);
    if (!match) return [];
    const before = ended.filter((step) => step.at !== '' && step.at <= (trial.submitted_at ?? '')).at(-1)?.value;
    const actual = trial.value === null || before === undefined ? null
      : study.study.direction === 'minimize' ? before / trial.value - 1 : trial.value / before - 1;
    return [{ trial, improvement: Number(match[2]) / 100, deviation: Number(match[3]) / 100, fits: Number(match[4]) / 100,
      gain: Number(match[5]) / 100, actual, because: match[1]! }];
  });
}

export const belief: ChartKind = {
  id: 'belief',
  title: 'Predictions of the search and results',
  shows: (study) => beliefs(study).length > 0,

  summary(study) {
    const all = beliefs(study);
    const known = all.filter((one) => one.actual !== null);
    const inside = known.filter((one) => Math.abs(one.actual! - one.improvement) <= 1.64 * one.deviation).length;
    const surprises = all.filter((one) => one.trial.outcome === 'out_of_memory').length;
    return `The search predicted the results of ${plural(all.length, 'trial')} against the best so far. ` +
      `${inside} of ${known.length} measured results lie within 1.64 standard deviations (90 % are expected); ${surprises} ran out of memory.`;
  },

  option(study, palette) {
    const all = beliefs(study);
    const data = all.map((one, i) => ({ value: [i, one.improvement, one.improvement - 1.64 * one.deviation, one.improvement + 1.64 * one.deviation], trial: one.trial.id }));
    const seen = [...all.map((one) => one.improvement), ...all.flatMap((one) => one.actual ?? [])];
    const low = Math.min(...seen), high = Math.max(...seen), room = 0.35 * (high - low || 0.1);
    return {
      grid: { left: 64, right: 16, top: 36, bottom: all.length > 60 ? 84 : 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (point: { trial: number }) => describe(study, point?.trial)),
      dataZoom: all.length > 60 ? [{ type: 'slider', bottom: 8, height: 18, textStyle: { color: palette.faint } }] : [],
      xAxis: { type: 'category', data: all.map((one) => String(one.trial.id)), ...axis(palette, 'trial', { splitLine: { show: false } }) },
      yAxis: { type: 'value', min: low - room, max: high + room, ...axis(palette, 'against the best so far', { nameGap: 46,
        axisLabel: { color: palette.faint, showMinLabel: false, showMaxLabel: false, formatter: (value: number) => percent(value) } }) },
      series: [
        { name: 'predicted, 90 % interval', type: 'custom', color: palette.faint, encode: { x: 0, y: 1 }, clip: true, data,
          renderItem: (_: unknown, api: { value(i: number): number; coord(at: number[]): number[] }) => {
            const top = api.coord([api.value(0), api.value(3)]), bottom = api.coord([api.value(0), api.value(2)]), middle = api.coord([api.value(0), api.value(1)]);
            const style = { stroke: palette.faint, lineWidth: 2 };
            return { type: 'group', children: [
              { type: 'line', shape: { x1: top[0], y1: top[1], x2: bottom[0], y2: bottom[1] }, style },
              { type: 'line', shape: { x1: middle[0]! - 5, y1: middle[1], x2: middle[0]! + 5, y2: middle[1] }, style }] };
          } },
        { name: 'measured', type: 'scatter', symbolSize: 8, color: palette.accent, data: all.flatMap((one, i) => one.actual === null ? [] : [{ value: [i, one.actual], trial: one.trial.id }]) },
        { name: 'out of memory', type: 'scatter', symbol: cross, symbolSize: 9, color: palette.bad,
          data: all.flatMap((one, i) => one.trial.outcome === 'out_of_memory' ? [{ value: [i, low - 0.6 * room], trial: one.trial.id }] : []) },
      ].filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    return {
      head: ['Trial', 'Configuration', 'Predicted', 'Deviation', 'Measured', 'Fits with', 'Expected gain', 'Outcome'],
      numeric: [true, false, true, true, true, true, true, false],
      rows: beliefs(study).map((one) => [one.trial.id, one.because, percent(one.improvement, 1), percent(one.deviation, 1),
        one.actual === null ? '–' : percent(one.actual, 1), percent(one.fits), percent(one.gain, 2), outcomeOf(one.trial)]),
    };
  },
};

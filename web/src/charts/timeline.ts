// The trials of each slot over time. If there are many slots, a row is a lane instead, which holds trials that ran one
// after the other.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { Study, Trial } from '../data';
import { duration, outcomeOf, percent, plural } from '../format';
import type { Colours } from '../theme';
import { describe } from './trials';

const kMostSlotRows = 16;

interface Bar { row: number; from: number; to: number; trial: Trial }

function ran(study: Study): { trial: Trial; from: number; to: number }[] {
  const begin = Date.parse(study.progress.started_at ?? '');
  const now = Date.parse(study.progress.last_at ?? '');
  return study.trials
    .filter((trial) => trial.started_at !== null && (trial.ended_at !== null || trial.place === 'running'))
    .map((trial) => ({ trial, from: (Date.parse(trial.started_at!) - begin) / 1000, to: ((trial.ended_at ? Date.parse(trial.ended_at) : now) - begin) / 1000 }));
}

function slotOrder(a: string, b: string): number { return a.localeCompare(b, 'en', { numeric: true }); }

function layout(study: Study): { names: string[]; bars: Bar[]; lanes: boolean } {
  const runs = ran(study);
  const slots = [...new Set(runs.flatMap((run) => run.trial.slots))].sort(slotOrder);
  if (slots.length > 0 && slots.length <= kMostSlotRows) {
    const row = new Map(slots.map((slot, i) => [slot, i]));
    return { names: slots, lanes: false,
      bars: runs.flatMap((run) => run.trial.slots.map((slot) => ({ row: row.get(slot)!, from: run.from, to: run.to, trial: run.trial }))) };
  }
  const free: number[] = [];  // the time at which each lane is empty again
  const bars = runs.sort((a, b) => a.from - b.from).map((run) => {
    let lane = free.findIndex((until) => until <= run.from + 1e-9);
    if (lane < 0) lane = free.length;
    free[lane] = run.to;
    return { row: lane, from: run.from, to: run.to, trial: run.trial };
  });
  return { names: free.map((_, i) => `lane ${i + 1}`), bars, lanes: true };
}

function colour(trial: Trial, palette: Colours): string {
  if (trial.place === 'running') return palette.good;
  if (trial.outcome === 'completed') return palette.accent;
  return trial.outcome === 'out_of_memory' ? palette.bad : trial.outcome === 'stopped' ? palette.faint : palette.warn;
}

const kKinds = ['completed', 'running', 'out of memory', 'failed', 'stopped'];
function kindOf(trial: Trial): string {
  if (trial.place === 'running') return 'running';
  return trial.outcome === 'completed' ? 'completed' : trial.outcome === 'out_of_memory' ? 'out of memory' : trial.outcome === 'stopped' ? 'stopped' : 'failed';
}

export const timeline: ChartKind = {
  id: 'timeline',
  title: 'What ran where',
  shows: (study) => ran(study).length > 0,
  height: (study) => Math.min(560, 96 + 22 * Math.max(2, layout(study).names.length)),

  summary(study) {
    const runs = ran(study);
    const { names, lanes } = layout(study);
    const whole = Math.max(...runs.map((run) => run.to), 0);
    const known = Array.isArray(study.study['slots']) ? study.study['slots'].length : 0;
    const slots = known || new Set(runs.flatMap((run) => run.trial.slots)).size || 1;
    const busy = runs.reduce((sum, run) => sum + (run.to - run.from) * Math.max(1, run.trial.devices), 0);
    const shared = lanes ? ` Each row is a lane: up to ${plural(names.length, 'trial')} ran side by side.` : '';
    const running = runs.filter((run) => run.trial.place === 'running').map((run) => run.trial.id);
    const now = running.length > 0 ? ` Running now: ${running.length > 8 ? plural(running.length, 'trial') : `trial ${running.join(', ')}`}.` : '';
    return `${plural(runs.length, 'trial')} on ${plural(slots, 'slot')} in ${duration(whole)}; the slots were busy ` +
      `${percent(whole > 0 ? Math.min(1, busy / (whole * slots)) : 0)} of the time.${shared}${now}`;
  },

  option(study, palette, width) {
    const { names, bars } = layout(study);
    const most = Math.max(...bars.map((bar) => bar.to), 1e-3);
    const [unit, unitName] = most > 3 * 3600 ? [3600, 'hours'] : most > 600 ? [60, 'minutes'] : [1, 'seconds'];
    return {
      grid: { left: Math.min(110, 30 + 8 * Math.max(...names.map((name) => name.length))), right: 16, top: 36, bottom: bars.length > 60 ? 80 : 48 },
      legend: legend(palette, { selectedMode: false, data: kKinds.filter((kind) => bars.some((bar) => kindOf(bar.trial) === kind)) }),
      tooltip: tooltip(palette, (data: { trial: number }) => {
        const trial = study.trials[data?.trial];
        return trial ? [...describe(study, trial.id).slice(0, 3), `ran ${duration(trial.run_seconds)} on ${slotText(trial)}`] : [];
      }),
      dataZoom: bars.length > 60 ? [{ type: 'slider', xAxisIndex: 0, bottom: 8, height: 18, textStyle: { color: palette.faint }, filterMode: 'weakFilter' }] : [],
      xAxis: { type: 'value', min: 0, max: most / unit, ...axis(palette, `${unitName} since the study began`, {
        axisLabel: { color: palette.faint, hideOverlap: true, showMaxLabel: false, formatter: (value: number) => String(Math.round(value * 10) / 10) } }) },
      yAxis: { type: 'category', inverse: true, data: names, ...axis(palette, '', { splitLine: { show: false }, axisTick: { show: false },
        axisLabel: { color: palette.faint, width: 90, overflow: 'truncate' } }) },
      series: [
        ...kKinds.map((kind) => ({ name: kind, type: 'bar', data: [], color: colour({ place: kind === 'running' ? 'running' : 'ended',
          outcome: kind.replaceAll(' ', '_') } as Trial, palette) })),
        { type: 'custom', name: 'trials', encode: { x: [1, 2], y: 0 },
          data: bars.map((bar) => ({ value: [bar.row, bar.from / unit, bar.to / unit], trial: bar.trial.id, color: colour(bar.trial, palette) })),
          renderItem: (params: { dataIndex: number; coordSys: { x: number; width: number } },
            api: { value(i: number): number; coord(at: number[]): number[]; size(of: number[]): number[] }) => {
            const from = api.coord([api.value(1), api.value(0)]), to = api.coord([api.value(2), api.value(0)]);
            const height = Math.min(18, api.size([0, 1])[1]! * 0.75);
            const left = Math.max(from[0]!, params.coordSys.x), right = Math.min(to[0]!, params.coordSys.x + params.coordSys.width);
            const bar = bars[params.dataIndex]!;
            const wide = Math.max(1, right - left);
            return {
              type: 'rect', shape: { x: left, y: from[1]! - height / 2, width: wide, height, r: 2 },
              style: { fill: colour(bar.trial, palette), stroke: palette.card, lineWidth: wide > 3 ? 1 : 0 },
              textContent: wide > 26 && width > 500 ? { style: { text: String(bar.trial.id), fill: palette.card, fontSize: 11 } } : undefined,
              textConfig: { position: 'inside' },
            };
          } },
      ],
    };
  },

  rows(study) {
    return {
      head: ['Trial', 'Began after', 'Ran', 'Slots', 'Outcome'],
      numeric: [true, true, true, false, false],
      rows: ran(study).map((run) => [run.trial.id, duration(run.from), duration(run.to - run.from), slotText(run.trial), outcomeOf(run.trial)]),
    };
  },
};

export function slotText(trial: Trial): string {
  if (trial.slots.length === 0) return '–';
  return trial.slots.length <= 8 ? trial.slots.join(', ') : `${trial.slots.length} slots, ${trial.slots[0]} to ${trial.slots.at(-1)}`;
}

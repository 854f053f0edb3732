// Estimated against measured peak memory: on the diagonal the estimate equals the measurement. A line marks the memory
// of the device.
import type { ChartKind } from '../chart';
import { axis, legend, tooltip } from '../chart';
import type { Study, Trial } from '../data';
import { bytes, outcomeOf, percent, plural } from '../format';
import { stageShapes } from '../theme';
import { cross } from './path';
import { describe, measuredOrFailed, stagesOf } from './trials';

const estimated = (study: Study): Trial[] => measuredOrFailed(study).filter((trial) => trial.peak_estimate !== null &&
  (trial.peak_bytes !== null || trial.outcome === 'out_of_memory'));
const measured = (study: Study): Trial[] => estimated(study).filter((trial) => trial.outcome === 'completed' && trial.peak_bytes !== null);

// The memory that a trial out of memory wanted at least: the known amount, else the memory of the device.
const wanted = (study: Study, trial: Trial): number | null => trial.peak_above_bytes ?? study.device_memory_bytes;

const outOfMemory = (study: Study): Trial[] => estimated(study).filter((trial) => trial.outcome === 'out_of_memory' && wanted(study, trial) !== null);

// The end of both axes: a little above the device's memory and the measurements.
function edge(study: Study): number {
  const all = measured(study).flatMap((trial) => [trial.peak_bytes!, trial.peak_estimate!.value]);
  return Math.max(...all, study.device_memory_bytes ?? 0, 1) * 1.08;
}

interface MemoryPoint { value: number[]; trial: number }

export const memory: ChartKind = {
  id: 'memory',
  title: 'Estimated against measured memory',
  shows: (study) => estimated(study).length > 0,
  height: () => 360,

  summary(study) {
    const known = measured(study);
    const limit = study.device_memory_bytes === null ? '' : ` A device has ${bytes(study.device_memory_bytes)}.`;
    const most = edge(study), beyond = outOfMemory(study).filter((trial) => trial.peak_estimate!.value > most).length;
    const cut = beyond === 0 ? '' : ` ${plural(beyond, 'trial')} out of memory, estimated at more than ${bytes(most)}, ${beyond === 1 ? 'stands' : 'stand'} at the edge.`;
    if (known.length === 0) return `No trial has reported its peak memory.${limit}${cut}`;
    const inside = known.filter((trial) => {
      const { low, high } = trial.peak_estimate!;
      return trial.peak_bytes! >= low && (high === null || trial.peak_bytes! <= high);
    }).length;
    const off = known.map((trial) => Math.abs(trial.peak_bytes! / trial.peak_estimate!.value - 1)).sort((a, b) => a - b);
    return `Half of the ${known.length} measured peaks lie within ${percent(off[Math.floor((off.length - 1) / 2)]!, 1)} of the estimate, ` +
      `${inside} within its 90 % interval. The memory model was fitted to all trials.${limit}${cut}`;
  },

  option(study, palette) {
    const fits = measured(study);
    const out = outOfMemory(study);
    const limit = study.device_memory_bytes;
    const most = edge(study);
    const large = fits.length > 2000;
    const point = (trial: Trial, y: number): MemoryPoint => {
      const { value, low, high } = trial.peak_estimate!;
      return { value: [Math.min(value, most), y, low, Math.min(high ?? most, most)], trial: trial.id };
    };
    const format = (value: number) => bytes(value);
    const line = limit === null ? undefined : {
      silent: true, symbol: 'none', label: { formatter: `device ${bytes(limit)}`, color: palette.faint, position: 'insideStartTop' },
      lineStyle: { color: palette.bad, type: 'dashed' }, data: [{ yAxis: limit }],
    };
    return {
      grid: { left: 78, right: 20, top: 36, bottom: 48 },
      legend: legend(palette),
      tooltip: tooltip(palette, (data: MemoryPoint) => {
        const trial = study.trials[data?.trial];
        if (!trial?.peak_estimate) return [];
        const { value, low, high } = trial.peak_estimate;
        return [...describe(study, trial.id).slice(0, 2), `estimated ${bytes(value)} (${bytes(low)} to ${high === null ? 'any' : bytes(high)})`,
          trial.outcome === 'out_of_memory' ? `wanted more than ${bytes(wanted(study, trial))}` : `measured ${bytes(trial.peak_bytes)}`];
      }),
      xAxis: { type: 'value', min: 0, max: most, ...axis(palette, 'estimated peak of a device', { axisLabel: { color: palette.faint, formatter: format, hideOverlap: true, showMaxLabel: false } }) },
      yAxis: { type: 'value', min: 0, max: most, ...axis(palette, 'measured peak', { nameGap: 62, axisLabel: { color: palette.faint, formatter: format, showMaxLabel: false } }) },
      series: [
        { name: 'estimate = measured', type: 'line', symbol: 'none', silent: true, data: [[0, 0], [most, most]], color: palette.faint,
          lineStyle: { color: palette.faint, width: 1, type: 'dotted' }, markLine: line },
        { name: '90 % interval', type: 'custom', silent: true, color: palette.line, data: large ? [] : fits.map((trial) => point(trial, trial.peak_bytes!)),
          renderItem: (_: unknown, api: { value(i: number): number; coord(at: number[]): number[] }) => {
            const from = api.coord([api.value(2), api.value(1)]), to = api.coord([api.value(3), api.value(1)]);
            return { type: 'line', shape: { x1: from[0], y1: from[1], x2: to[0], y2: to[1] }, style: { stroke: palette.faint, lineWidth: 1.5, opacity: 0.7 } };
          } },
        ...stagesOf(fits).map((stage) => ({
          name: `stage ${stage}`, type: 'scatter', symbol: stageShapes[stage], symbolSize: large ? 4 : 9, color: palette.stages[stage],
          data: fits.filter((trial) => trial.stage === stage).map((trial) => point(trial, trial.peak_bytes!)),
        })),
        { name: 'out of memory (at least)', type: 'scatter', symbol: cross, symbolSize: large ? 5 : 9, color: palette.bad,
          data: out.map((trial) => point(trial, Math.min(wanted(study, trial)!, most))) },
      ].filter((series) => series.data.length > 0),
    };
  },

  rows(study) {
    return {
      head: ['Trial', 'Stage', 'Micro batch', 'Estimated', '90 % interval', 'Measured', 'Outcome'],
      numeric: [true, true, true, true, true, true, false],
      rows: estimated(study).map((trial) => {
        const { value, low, high } = trial.peak_estimate!;
        return [trial.id, trial.stage, trial.micro_batch, bytes(value), `${bytes(low)} to ${high === null ? 'any' : bytes(high)}`,
          trial.outcome === 'out_of_memory' ? `more than ${bytes(wanted(study, trial))}` : bytes(trial.peak_bytes), outcomeOf(trial)];
      }),
    };
  },
};

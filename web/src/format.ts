// Measured values as text, with the units of dsat-host's own output.
import type { Json, Trial } from './data';

const digits = (value: number, count = 3): string => {
  if (value === 0) return '0';
  const text = value.toPrecision(count);
  return text.includes('e') ? String(Number(text)) : text.includes('.') ? text.replace(/\.?0+$/, '') : text;
};

// A larger value has all its digits before the point.
const fourDigits = (value: number): string => (value < 1e3 ? digits(value, 4) : value.toFixed(0));

export function count(value: number): string {
  const prefixes = ['', ' k', ' M', ' G', ' T', ' P', ' E'];
  let index = 0;
  while (Math.abs(value) >= 999.5 && index + 1 < prefixes.length) { value /= 1e3; ++index; }
  return digits(value) + prefixes[index];
}

export function metric(name: string, value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  if (name === 'FLOPS_per_gpu') { const text = count(value); return text + (text.includes(' ') ? '' : ' ') + 'FLOP/s'; }
  if (name === 'throughput' || name === 'wall_throughput') return `${fourDigits(value)} samples/s`;
  if (name === 'printed') return fourDigits(value);
  return value < 999.5e3 ? `${digits(value / 1e3)} ms` : `${fourDigits(value / 1e6)} s`;
}

const kMetricNames: Record<string, string> = {
  FLOPS_per_gpu: 'FLOP/s per device', throughput: 'Throughput (samples/s)', latency: 'Time of a step',
  forward: 'Time of forward', backward: 'Time of backward', step: 'Time of the optimizer step',
  wall_throughput: 'Throughput, end to end (samples/s)', wall_latency: 'Time of a step, end to end',
  printed: 'Printed number',
};
export const metricName = (name: string): string => kMetricNames[name] ?? name;

export function bytes(value: number | null | undefined): string {
  if (value === null || value === undefined) return '–';
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let index = 0;
  while (Math.abs(value) >= 999.5 && index + 1 < units.length) { value /= 1e3; ++index; }
  return `${digits(value)} ${units[index]}`;
}

export function duration(seconds: number | null | undefined): string {
  if (seconds === null || seconds === undefined) return '–';
  if (seconds < 1) return `${digits(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 60) return `${Math.round(seconds)} s`;
  const minutes = Math.round(seconds / 60);
  if (minutes < 60) return seconds < 600 ? `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s` : `${minutes} min`;
  if (minutes < 48 * 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${digits(seconds / 86400)} days`;
}

export function deviceHours(hours: number): string {
  if (hours < 1 / 60) return `${digits(hours * 3600)} device-seconds`;
  return hours < 1 ? `${digits(hours * 60)} device-minutes` : `${digits(hours)} device-hours`;
}

export const percent = (share: number, decimals = 0): string => `${(share * 100).toFixed(decimals)} %`;
export const words = (name: string): string => name.replaceAll('_', ' ');
export const plural = (n: number, one: string, many = `${one}s`): string => `${n} ${n === 1 ? one : many}`;
export const orDash = (value: number | string | null | undefined): string =>
  value === null || value === undefined || value === '' ? '–' : String(value);

export function json(value: Json | undefined): string {
  return value === null || value === undefined ? 'not set' : typeof value === 'string' && value !== '' ? value : JSON.stringify(value);
}

export function outcomeOf(trial: Trial): string {
  return trial.outcome ? words(trial.outcome) : trial.place;
}

export function when(time: string | null): string {
  if (!time) return '–';
  const date = new Date(time);
  return Number.isNaN(date.getTime()) ? time : date.toLocaleString(undefined, { dateStyle: 'medium', timeStyle: 'medium' });
}

// "1.9 ×", with as many decimals as the interval justifies; without an interval no factor.
export function ratio(gain: { ratio: number; low: number | null; high: number | null }): string {
  if (gain.low === null || gain.high === null) return gain.ratio > 1 ? 'better' : 'no better';
  return `${bound(gain, gain.ratio)} ×`;
}
// A bound or ratio with as many decimals as the interval justifies; two significant digits if the interval is very
// wide.
export function bound(gain: { low: number | null; high: number | null }, value: number): string {
  if (gain.low === null || gain.high === null || gain.high > 10 * gain.low) return twoDigits(value);
  return value.toFixed(gainDecimals(gain.low, gain.high));
}
// "1.7", "140".
export const twoDigits = (value: number): string =>
  value < 10 ? value.toPrecision(2) : String(Number(value.toPrecision(2)));
export function gainDecimals(low: number, high: number): number {
  const half = (high - low) / 2;
  return half >= 0.1 ? 1 : half >= 0.005 ? 2 : 3;
}

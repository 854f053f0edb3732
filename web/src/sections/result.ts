// The top of the page: the status of the study, the best, its gain, and the cost of the search.
import type { Estimate, Study, Trial } from '../data';
import type { Child } from '../dom';
import { h, scrolling, table } from '../dom';
import { quoted } from './again';
import { whyNone } from './best';
import { bound, bytes, deviceHours, duration, metric, metricName, orDash, plural, ratio, twoDigits, when, words } from '../format';

const kStatusWords: Record<string, string> = {
  running: 'running', completed: 'completed', no_best: 'ended without a best', interrupted: 'interrupted', failed: 'failed',
};

export function statusPill(status: string): HTMLElement {
  return h('span', { class: `pill ${status}` }, kStatusWords[status] ?? status);
}

function card(title: string, value: Child, more: Child, kind = ''): HTMLElement {
  return h('div', { class: `card ${kind}` }, h('h3', {}, title), h('p', { class: 'figure' }, value), h('p', { class: 'faint' }, more));
}

// The number of measurements of a trial's configuration.
function measurements(study: Study, trial: Trial | undefined): number {
  const config = JSON.stringify(trial?.config);
  return study.trials.filter((one) => one.value !== null && one.duplicate_of === null &&
    (one === trial || (one.stage === trial?.stage && one.micro_batch === trial?.micro_batch && JSON.stringify(one.config) === config))).length;
}

// There may be no gain if the interval reaches down to 1.
const isSure = (gain: Study['study']['gain'], share = 1): boolean => gain !== null && (gain.low === null || gain.low * share > 1);

// The factor from the gain to the gain of one device; 1 for FLOPS_per_gpu, which is per device already.
function deviceShare(study: Study): number {
  const of = (id: number | undefined): number => study.trials[id ?? -1]?.devices || 1;
  return study.study.metric === 'FLOPS_per_gpu' ? 1 : of(study.study.gain?.baseline) / of(study.study.best?.trial);
}

// " on 8 devices" if trials have several sizes.
function onDevices(study: Study, id: number): string {
  const sizes = new Set(study.trials.map((trial) => trial.devices).filter((devices) => devices > 0));
  return sizes.size > 1 ? ` on ${plural(study.trials[id]?.devices ?? 0, 'device')}` : '';
}

function bestCard(study: Study): HTMLElement {
  const best = study.study.best;
  if (!best) return card('Best', 'none', whyNone(study), 'wide');
  const trial = study.trials[best.trial];
  const runs = measurements(study, trial);
  return card(`Best: ${metricName(study.study.metric)}`, metric(study.study.metric, best.metric), [
    runs > 1 && `Mean of ${runs} measurements. `,
    h('a', { href: `#trial-${best.trial}` }, `Trial ${best.trial}`),
    `${onDevices(study, best.trial)}: ZeRO stage ${trial?.stage ?? '–'}, micro batch ${trial?.micro_batch ?? '–'}, accumulation ${trial?.accumulation ?? '–'}`,
    trial?.peak_bytes ? `, peak memory ${bytes(trial.peak_bytes)}` : null, '.', best.why ? ` ${best.why[0]!.toUpperCase()}${best.why.slice(1)}.` : null,
  ], 'wide');
}

function endToEnd(study: Study): string {
  const times = study.study.end_to_end;
  if (!times?.script_bound) return '';
  const gain = times.ratio === null ? '' : `: ${twoDigits(times.ratio)} × yours by the clock`;
  return ` End to end a step takes ${metric('latency', times.wall_us)}, of which the engine takes ` +
    `${metric('latency', times.engine_us)} (does the script wait for its data?)${gain}.`;
}

const measuredOnce = (gain: NonNullable<Study['study']['gain']>): string =>
  gain.of_best.measurements === 1 && gain.of_own.measurements === 1 ? 'Each measured once. ' : '';

// Only measurements after the choice of the best count for the gain.
function madeOf(study: Study): string {
  const { gain, metric: name } = study.study;
  if (!gain?.left_out) return '';
  return ` The best: ${metric(name, gain.of_best.value)} (${plural(gain.of_best.measurements, 'measurement')} after its choice, ` +
    `without ${gain.left_out} before it). Yours: ${metric(name, gain.of_own.value)} (${plural(gain.of_own.measurements, 'measurement')}).`;
}

function gainCard(study: Study): HTMLElement {
  const title = 'Against your own configuration';
  const { gain, best } = study.study;
  if (!best) return card(title, '–', 'Nothing to compare yet.');
  if (!gain) {
    const own = study.baseline === null ? undefined : study.trials[study.baseline];
    const why = own?.outcome && own.outcome !== 'completed' ? `Your own configuration (trial ${own.id}) ended ${words(own.outcome)}.`
      : 'Your own configuration was not measured.';
    return card(title, '–', why);
  }
  if (gain.baseline === best.trial) return card(title, 'no gain', 'Your own configuration is the best.');
  const sure = gain.low === null || gain.high === null ? `${measuredOnce(gain)}No interval, because the best was not measured again after its choice.`
    : `95 % interval ${bound(gain, gain.low)} to ${bound(gain, gain.high)}.${madeOf(study)}`;
  const open = isSure(gain) ? '' : ' The interval includes 1, so there may be no gain: measure again, or longer.';
  return card(title, ratio(gain), [sure, open, ' Yours is ', h('a', { href: `#trial-${gain.baseline}` }, `trial ${gain.baseline}`), `${onDevices(study, gain.baseline)}.`, endToEnd(study)],
    gain.ratio > 1 && gain.low !== null && isSure(gain) ? 'good' : '');
}

function paybackCard(study: Study): HTMLElement {
  const { spent_device_hours: spent, saved_device_hours_per_day: saved, days } = study.payback;
  const simulated = study.plan['runner'] === 'sim' ? ' Times are simulated.' : '';
  if (saved === null) return card('Payback', deviceHours(spent), `spent on the search.${simulated}`);
  const fair = deviceShare(study) === 1 ? '' : ', device for device';
  if (days === null) return card('Payback', 'none', `${deviceHours(spent)} spent; the best trains no faster than your own${fair}.${simulated}`);
  return card('Payback', `after ${duration(days * 86400)}`,
    `of training: ${deviceHours(spent)} spent on the search, ${deviceHours(saved)} saved for each day of training with your own on the devices of its trial` +
    `${isSure(study.study.gain, deviceShare(study)) ? '.' : ', if the gain holds.'}${simulated}`);
}

function progressCard(study: Study): HTMLElement {
  const p = study.progress;
  const counts = new Map<string, number>();
  for (const trial of study.trials) {
    if (trial.outcome && trial.duplicate_of === null) counts.set(trial.outcome, (counts.get(trial.outcome) ?? 0) + 1);
  }
  const counted = [...counts].map(([outcome, n]) => `${n} ${words(outcome)}`);
  if (p.running > 0) counted.push(`${p.running} running`);
  if (p.waiting > 0) counted.push(`${p.waiting} waiting`);
  const left = p.seconds_left !== null && study.study.status === 'running' ? `, about ${duration(p.seconds_left)} left` : '';
  return h('div', { class: 'card' }, h('h3', {}, 'Trials'),
    h('p', { class: 'figure' }, `${p.started} of ${p.max_trials}`),
    h('progress', { max: Math.max(1, p.max_trials), value: p.started, 'aria-label': 'Trials started' }),
    h('p', { class: 'faint' }, `${counted.join(', ') || 'None yet'}. ${duration(p.elapsed_seconds)}${left}.`));
}

// All searchers, if a resume has changed the searcher.
function searchers(study: Study): string {
  const all = study.study['searchers'];
  if (Array.isArray(all)) return all.map((one) => String(one)).join(', then ');
  return String((study.plan['searcher'] as { name?: string } | undefined)?.name ?? '–');
}

export function head(study: Study): Child {
  const info = study.study;
  const kind = info.status === 'failed' || info.status === 'no_best' ? 'bad' : info.status === 'interrupted' ? 'warn' : '';
  return [
    h('div', { class: 'title' }, h('h1', {}, info.name || 'Study'), statusPill(info.status)),
    h('p', { class: 'faint' }, `Searcher ${searchers(study)}, metric ${info.metric} `,
      `(${info.direction === 'minimize' ? 'the smallest is the best' : 'the largest is the best'}), begun ${when(study.progress.started_at)}. `,
      h('code', {}, info.dir)),
    info.reason ? h('p', { class: `notice ${kind}`, role: kind ? 'status' : null }, `${info.status === 'running' ? '' : 'Ended: '}${info.reason.replace(/; `dsat-host resume` goes on$/, '')}`) : null,
    info.status === 'interrupted' ? h('p', { class: 'faint' }, h('code', {}, `dsat-host resume ${quoted(info.dir)}`), ' continues it.') : null,
  ];
}

export function result(study: Study): Child {
  return h('div', { class: 'cards' }, bestCard(study), gainCard(study), paybackCard(study), progressCard(study));
}

export function stages(study: Study): Child {
  if (study.stages.length === 0) return null;
  const head = ['Stage', 'Trials', 'Out of memory', 'Failed', 'Best', 'Its trial', 'Largest that fitted',
    'Smallest out of memory', 'Ceiling (90 %)'];
  const rows = study.stages.map((stage): Child[] => [
    `ZeRO ${stage.stage}`, stage.trials, stage.out_of_memory, stage.failed, metric(study.study.metric, stage.best_value),
    stage.best_trial === null ? '–' : h('a', { href: `#trial-${stage.best_trial}` }, String(stage.best_trial)),
    orDash(stage.largest_that_fitted), orDash(stage.smallest_out_of_memory), ceiling(stage.ceiling),
  ]);
  return [h('h2', { id: 'stages' }, 'Stages'),
    h('p', { class: 'faint' }, 'Fitted, out of memory and ceiling are micro batches. The ceiling is the memory model’s estimate for the stage’s best configuration.'),
    scrolling('Stages', table('Results of each ZeRO stage', head, rows, head.map((_, i) => i > 0)))];
}

function ceiling(estimate: Estimate | null): string {
  if (estimate === null) return '–';
  const low = Math.floor(estimate.low);
  // The model searches for the ceiling up to a bound far above any batch.
  const isOpen = estimate.high === null || estimate.high >= 1e9;
  return `${Math.floor(estimate.value)} (${isOpen ? `${low} or more` : `${low} to ${Math.floor(estimate.high!)}`})`;
}

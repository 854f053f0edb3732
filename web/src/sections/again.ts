// Everything that repeats the study: the command, its folder and environment, plugins and seed.
import type { Json, JsonObject, Study } from '../data';
import type { Child } from '../dom';
import { h, scrolling, table } from '../dom';
import { json, plural } from '../format';
import { copyButton } from './best';

export const quoted = (word: string): string => (/^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);

const texts = (value: Json | undefined): string[] => (Array.isArray(value) ? value.map((one) => String(one)) : []);

function plugin(value: Json | undefined): string {
  const one = (value ?? {}) as JsonObject;
  const options = Object.entries((one['options'] ?? {}) as JsonObject).map(([key, option]) => `--${key} ${json(option)}`);
  return `${json(one['name'])} ${json(one['version'])}${options.length > 0 ? `, ${options.join(' ')}` : ''} (SHA-256 ${String(one['sha256'] ?? '').slice(0, 12)})`;
}

export function again(study: Study): Child {
  const plan = study.plan;
  const command = texts(plan['command']).map(quoted).join(' ');
  const variables = texts(plan['variables']);
  const simulated = plan['runner'] === 'sim';
  const rows: Child[][] = [
    ['Folder', h('code', {}, String(plan['cwd'] ?? '–'))],
    [simulated ? 'Scenario' : 'Configuration file', h('code', {}, String(plan['config_file'] ?? '') || '–')],
    ['Searcher', plugin(plan['searcher'])],
    ['Profiler', plugin(plan['profiler'])],
    ['Seed', String(plan['seed'] ?? '–')],
    ['Limits', `${plural(Number(plan['max_trials']), 'trial')}, ${json(plan['max_concurrent_trials'])} at a time`],
    ['Variables of every trial', variables.length > 0 ? `${variables.join(', ')} (without their values)` : 'those of the shell, and DSAT_TRIAL_ID, DSAT_TRIAL_DIR, DSAT_DS_CONFIG, MASTER_PORT'],
    ['dsat', study.version],
  ];
  const lines = [
    `cd ${quoted(String(plan['cwd'] ?? '.'))}`,
    simulated ? `dsat-host show ${quoted(study.study.dir)} --csv > trials.csv  # a trace; --runner sim --sim trials.csv replays it`
      : study.study.best && `sh ${quoted(`${study.study.dir}/best_cmd.txt`)}  # trains with the best configuration`,
    ...(command ? [`# the command that was tuned:`, command] : []),
  ].filter(Boolean).join('\n');
  return [
    h('h2', { id: 'again' }, 'To do it again'),
    h('div', { class: 'code' }, copyButton(() => lines, 'the commands'), h('pre', { tabindex: 0 }, lines)),
    scrolling('Settings', table('Settings of the study', ['Setting', 'Value'], rows)),
    h('details', {}, h('summary', {}, 'All resolved settings'), h('pre', { tabindex: 0 }, JSON.stringify(plan, null, 2))),
  ];
}

// The best configuration: its changes to the user's own, and the whole file to copy.
import type { Study } from '../data';
import type { Child } from '../dom';
import { h, scrolling, table } from '../dom';
import { json } from '../format';

export function copyButton(text: () => string, what: string): HTMLElement {
  const button = h('button', { type: 'button', click: async () => {
    try {
      await navigator.clipboard.writeText(text());
      button.textContent = 'Copied';
    } catch {
      button.textContent = 'Select the text and copy it';
    }
    setTimeout(() => { button.textContent = 'Copy'; }, 2000);
  }, 'aria-label': `Copy ${what}` }, 'Copy');
  return button;
}

// A long key may break after its dots and underscores.
const breakable = (key: string): Child => key.split(/(?<=[._])/).flatMap((part, i) => i === 0 ? [part] : [h('wbr'), part]);

function changes(study: Study): HTMLTableElement {
  const rows = study.changes.map((change): Child[] => [h('code', {}, breakable(change.key)), h('del', {}, json(change.own)), h('ins', {}, json(change.best))]);
  const made = table('What the best configuration changes', ['Key', 'Yours', 'Best'], rows);
  made.className = 'changes';
  return made;
}

export const whyNone = (study: Study): string => study.trials.some((trial) => trial.value !== null) ?
  'No measured configuration is valid as the best.' : 'No trial has measured the metric.';

export function best(study: Study): Child {
  const found = study.study.best;
  if (!found) return [h('h2', { id: 'best' }, 'The best configuration'), h('p', { class: 'faint' }, whyNone(study))];
  const text = JSON.stringify(found.config, null, 2);
  const own = study.baseline === null ? 'your configuration file' : `your own configuration (trial ${study.baseline})`;
  const same = study.changes.length === 0;
  return [
    h('h2', { id: 'best' }, 'The best configuration'),
    study.has_own && (same ? h('p', {}, `It is the same as ${own}.`) : [
      h('p', {}, `It differs from ${own} in ${study.changes.length === 1 ? 'one key' : `${study.changes.length} keys`}:`),
      scrolling('What changes', changes(study)),
    ]),
    study.changed_train_batch && h('p', { class: 'notice' },
      'The global batch (train_batch_size) differs from yours: check the learning rate and its schedule, or fix the batch with --global-batch.'),
    h('details', {}, h('summary', {}, 'The whole file, ready to train with'),
      h('div', { class: 'code' }, copyButton(() => text, 'the configuration'), h('pre', { tabindex: 0 }, text))),
  ];
}

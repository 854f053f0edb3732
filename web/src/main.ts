// Starts the page with the data in the file, or with a server that it asks again and again.
import type { Listed, Study } from './data';
import { Followed, embedded } from './data';
import { h, replace } from './dom';
import { when } from './format';
import { StudiesView } from './studies';
import { StudyView } from './study_view';
import { isDark, showTheme, startTheme, toggleTheme } from './theme';

const kLiveMs = 250, kEndedMs = 3000, kHiddenMs = 5000;

const view = new StudyView();
const state = h('span', { id: 'live', role: 'status' });
const themeButton = h('button', { type: 'button', id: 'theme', click: () => { toggleTheme(); themed(); } });
let studies: StudiesView | null = null;

function themed(): void {
  themeButton.textContent = isDark() ? 'Light' : 'Dark';
  themeButton.setAttribute('aria-label', `Use ${isDark() ? 'light' : 'dark'} colours`);
  redraw();
}

function redraw(all = false): void {
  view.redraw(all);
  studies?.redraw(all);
}

function build(): void {
  const links = [['best', 'Best'], ['stages', 'Stages'], ['charts', 'Charts'], ['trials', 'Trials'], ['again', 'Do it again']];
  replace(document.getElementById('page')!,
    h('nav', { class: 'top', 'aria-label': 'Page' }, h('strong', {}, 'dsat'), links.map(([id, text]) => h('a', { href: `#${id}` }, text!)), h('span', { class: 'grow' }), state, themeButton),
    studies?.element, view.element);
  themed();
}

function show(study: Study): void {
  document.title = `${study.study.name || 'study'} – dsat`;
  view.update(study);
  document.documentElement.dataset.ready = String(study.trials.length);
}

const asleep = (ms: number): Promise<void> => new Promise((done) => setTimeout(done, document.hidden ? kHiddenMs : ms));

function say(text: string, kind: string): void {
  if (state.textContent !== text) state.textContent = text;
  state.className = kind;
}

async function follow(): Promise<void> {
  // The study is in the query, because the hash is the place on the page.
  const address = new URL(location.href);
  let chosen = Number(/^\d+$/.exec(address.searchParams.get('study') ?? '')?.[0] ?? 0);
  let study = new Followed<Study>(`study/${chosen}.json`);
  let wake = () => {};
  let list: Listed[] = [];
  const compared = studies = new StudiesView((id) => {
    chosen = id;
    study = new Followed<Study>(`study/${id}.json`);
    address.searchParams.set('study', String(id));
    history.replaceState(null, '', address.search);
    compared.update(list, chosen);
    wake();
  });
  build();
  const listed = new Followed<Listed[]>('studies.json');
  let status = 'running';
  for (;;) {
    try {
      const [fresh, changed] = [await listed.next(), chosen];
      if (fresh) compared.update(list = fresh, chosen);
      const now = await study.next();
      if (now && changed === chosen) { status = now.study.status; show(now); }
      say(status === 'running' ? 'Live' : `Ended, read ${when(new Date().toISOString())}`, status === 'running' ? 'live' : '');
    } catch (error) {
      say(error instanceof TypeError ? 'The server does not answer; trying again' : String((error as Error).message), 'lost');
    }
    await Promise.race([asleep(status === 'running' ? kLiveMs : kEndedMs), new Promise<void>((done) => { wake = done; })]);
  }
}

async function start(): Promise<void> {
  startTheme(themed);
  const study = await embedded();
  if (!study) return follow();
  build();
  say(study.study.status === 'running' ? `State of ${when(study.progress.last_at)}` : '', '');
  show(study);
}

addEventListener('beforeprint', () => { showTheme(true); redraw(true); });
addEventListener('afterprint', () => { showTheme(); redraw(); });

// dsat-host wrote this part with every text escaped.
const plain = document.querySelector('noscript')?.textContent ?? '';
start().catch((error) => {
  const tables = h('div');
  tables.innerHTML = plain;
  replace(document.getElementById('page')!, h('main', {}, h('p', { class: 'notice bad' }, `The page cannot be drawn: ${String(error)}`), tables));
});

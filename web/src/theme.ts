// Light or dark: the system's choice until the reader makes one; colours and shapes that charts share with the text.

export interface Colours {
  text: string; faint: string; line: string; card: string; accent: string; good: string; bad: string; warn: string;
  stages: string[];
}
const kKey = 'dsat-theme';

const stored = (): string | null => { try { return localStorage.getItem(kKey); } catch { return null; } };
const systemDark = matchMedia('(prefers-color-scheme: dark)');

export const isDark = (): boolean => (document.documentElement.dataset.theme ?? (systemDark.matches ? 'dark' : 'light')) === 'dark';

export function colours(): Colours {
  const style = getComputedStyle(document.documentElement);
  const of = (name: string) => style.getPropertyValue(`--${name}`).trim();
  return {
    text: of('text'), faint: of('faint'), line: of('line'), card: of('card'), accent: of('accent'), good: of('good'),
    bad: of('bad'), warn: of('warn'), stages: [0, 1, 2, 3].map((stage) => of(`stage-${stage}`)),
  };
}

// Told apart without colour, too.
export const stageShapes = ['circle', 'rect', 'triangle', 'diamond'];

export function startTheme(changed: () => void): void {
  const chosen = stored();
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
  systemDark.addEventListener('change', changed);
}

// Light for a while, as paper is; gives what brings back the reader's own.
export function lightForPaper(): () => void {
  const own = document.documentElement.dataset.theme;
  document.documentElement.dataset.theme = 'light';
  return () => {
    if (own) document.documentElement.dataset.theme = own;
    else delete document.documentElement.dataset.theme;
  };
}

export function toggleTheme(): void {
  const theme = isDark() ? 'light' : 'dark';
  document.documentElement.dataset.theme = theme;
  try { localStorage.setItem(kKey, theme); } catch { /* a file may have no storage */ }
}

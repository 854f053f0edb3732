// Light or dark theme: the system's choice until the reader chooses. Colours and shapes that charts share with the
// text.

export interface Colours {
  text: string; faint: string; line: string; card: string; accent: string; good: string; bad: string; warn: string;
  stages: string[];
}
const kKey = 'dsat-theme';

// The reader's choice; null: the system's.
let chosen: string | null = null;

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

// Shapes tell the stages apart without colours.
export const stageShapes = ['circle', 'rect', 'triangle', 'diamond'];

// On paper the theme is always light.
export function showTheme(onPaper = false): void {
  const theme = onPaper ? 'light' : chosen;
  if (theme) document.documentElement.dataset.theme = theme;
  else delete document.documentElement.dataset.theme;
}

export function startTheme(changed: () => void): void {
  const kept = stored();
  if (kept === 'dark' || kept === 'light') chosen = kept;
  showTheme();
  systemDark.addEventListener('change', changed);
}

export function toggleTheme(): void {
  chosen = isDark() ? 'light' : 'dark';
  showTheme();
  try { localStorage.setItem(kKey, chosen); } catch { /* a file may have no storage */ }
}

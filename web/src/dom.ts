// Makes elements from code. Text becomes text nodes, so no text of a trial is read as HTML.

export type Child = Node | string | number | null | undefined | false | Child[];
type Attributes = Record<string, string | number | boolean | null | undefined | ((event: Event) => void)>;

function append(parent: Node, child: Child): void {
  if (child === null || child === undefined || child === false) return;
  if (Array.isArray(child)) child.forEach((one) => append(parent, one));
  else parent.appendChild(child instanceof Node ? child : document.createTextNode(String(child)));
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K, attributes: Attributes = {}, ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  append(element, children);
  return element;
}

export function replace(parent: Element, ...children: Child[]): void {
  const fresh = document.createDocumentFragment();
  append(fresh, children);
  parent.replaceChildren(fresh);
}

// Makes these elements the children. A child that stays is not touched, so that a selection and the focus in it stay.
export function arrange(parent: Element, children: Element[]): void {
  const wanted = new Set(children);
  for (const child of [...parent.children]) if (!wanted.has(child)) child.remove();
  children.forEach((child, i) => { if (parent.children[i] !== child) parent.insertBefore(child, parent.children[i] ?? null); });
}

// A table of texts; the first column names the row.
export function table(caption: string, head: string[], rows: Child[][], numeric: boolean[] = []): HTMLTableElement {
  const cell = (tag: 'td' | 'th', content: Child, column: number, scope?: string) =>
    h(tag, { scope, class: numeric[column] ? 'number' : null }, content);
  return h('table', {},
    h('caption', { class: 'hidden' }, caption),
    h('thead', {}, h('tr', {}, head.map((text, i) => cell('th', text, i, 'col')))),
    h('tbody', {}, rows.map((row) => h('tr', {}, row.map((text, i) => cell(i === 0 ? 'th' : 'td', text, i, i === 0 ? 'row' : undefined))))));
}

// A region that scrolls sideways if it is too wide; the keyboard reaches it.
export function scrolling(label: string, content: Node): HTMLElement {
  return h('div', { class: 'scroll', tabindex: 0, role: 'region', 'aria-label': label }, content);
}

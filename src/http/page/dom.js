// Making and updating elements. Text only ever becomes text: there is no innerHTML on this page, and Trusted Types refuse it.

/**
 * @param {string} tag
 * @param {Record<string, string | boolean | ((event: Event) => void)>} [attributes] a function is a listener of that event
 * @param {...(Node | string | null)} children
 * @returns {HTMLElement}
 */
export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (typeof value === 'function') element.addEventListener(name, value);
    else if (value === true) element.setAttribute(name, '');
    else if (value !== false) element.setAttribute(name, value);
  }
  for (const child of children) if (child !== null) element.append(child);
  return element;
}

/**
 * Words from outside, apart from the text around them whatever their direction.
 * @param {string} text
 */
export function foreign(text) {
  return h('bdi', {}, text);
}

/**
 * Writes only what changed: a screen reader and a selection notice every write.
 * @param {Element} element @param {string} text
 */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/**
 * Makes a list show `items`: rows are kept by key, so that focus stays where it is while numbers change.
 * @template T
 * @param {Element} list
 * @param {readonly T[]} items
 * @param {(item: T) => string} keyOf
 * @param {(item: T) => HTMLElement} create
 * @param {(row: HTMLElement, item: T) => void} update
 */
export function syncList(list, items, keyOf, create, update) {
  /** @type {Map<string, HTMLElement>} */
  const rows = new Map();
  for (const row of /** @type {HTMLElement[]} */ ([...list.children])) rows.set(row.dataset.key ?? '', row);
  const keys = new Set(items.map(keyOf));
  for (const [key, row] of rows) if (!keys.has(key)) row.remove();
  items.forEach((item, index) => {
    const key = keyOf(item);
    let row = rows.get(key);
    if (row === undefined) {
      row = create(item);
      row.dataset.key = key;
    }
    update(row, item);
    if (list.children[index] !== row) list.insertBefore(row, list.children[index] ?? null);
  });
}

/**
 * The part of a row that is named so.
 * @param {Element} row @param {string} name
 * @returns {HTMLElement}
 */
export function part(row, name) {
  const found = row.querySelector(`[data-part="${name}"]`);
  if (found === null) throw new Error(`no part ${name}`);
  return /** @type {HTMLElement} */ (found);
}

/** @param {string} id @returns {HTMLElement} */
export function byId(id) {
  const found = document.getElementById(id);
  if (found === null) throw new Error(`no element ${id}`);
  return found;
}

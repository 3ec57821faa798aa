// Elements without markup: text of strangers is only ever text. Owns: making and replacing nodes.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element; `attributes` are set as they are, `on...` ones are listeners. */
export function h(tag, attributes = {}, ...children) {
  return fill(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function s(tag, attributes = {}, ...children) {
  return fill(document.createElementNS(SVG, tag), attributes, children);
}

function fill(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** Replace what an element holds, unless it would look the same: focus and selection stay. */
export function show(element, ...children) {
  const fresh = document.createElement("div");
  fresh.append(...children.flat());
  if (fresh.innerHTML !== element.innerHTML) element.replaceChildren(...fresh.childNodes);
}

/** Return a table; a column is {title, cell(row), kind}, where kind is a class of its cells. */
export function table(caption, columns, rows, nothing) {
  if (!rows.length) return h("p", { class: "hint" }, nothing);
  const head = columns.map((column) => h("th", { scope: "col", class: column.kind }, column.title));
  const body = rows.map((row) =>
    h("tr", {}, columns.map((column) => h("td", { class: column.kind }, column.cell(row) ?? ""))),
  );
  return h("table", { "aria-label": caption }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
}

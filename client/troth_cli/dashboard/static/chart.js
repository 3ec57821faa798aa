// One line chart, drawn as SVG with its numbers as a table beneath.
// Owns: scales, lines, labels. Never: decides what is plotted.

import { h, s, show } from "./dom.js";

const WIDTH = 560;
const HEIGHT = 220;
const LEFT = 62;
const RIGHT = 12;
const TOP = 10;
const BOTTOM = 30;
const TICKS = 4;
const MOST_ROWS = 40;

/**
 * Draw a chart into a figure.
 * `series`: [{name, points: [[x, y], ...]}], x are round numbers. `marks`: [{x, text}] are events.
 */
export function drawChart(figure, { title, note, series, marks = [], format, empty }) {
  const open = figure.querySelector("details")?.open ?? false;
  const caption = h("figcaption", {}, title, " ", h("small", {}, note));
  const drawn = series.filter((one) => one.points.length);
  if (!drawn.length) {
    show(figure, caption, h("p", { class: "hint" }, empty));
    return;
  }
  const scale = scaleOf(drawn);
  const text = `${title}. ${drawn.map((one) => sentence(one, format)).join(" ")}`;
  const svg = s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": text });
  svg.append(...axes(scale, format), ...drawn.map((one, index) => line(one, index, scale)));
  svg.append(...marks.filter((mark) => scale.holds(mark.x)).map((mark) => cross(mark, scale)));
  const legend = drawn.length > 1 ? h("p", { class: "legend" }, drawn.map(named).join("   ")) : null;
  show(figure, caption, svg, ...(legend ? [legend] : []), numbers(title, drawn, format, open));
}

function sentence({ name, points }, format) {
  const [first, last] = [points[0], points[points.length - 1]];
  return `${name}: ${format(first[1])} at round ${first[0]}, ${format(last[1])} at round ${last[0]}.`;
}

function named({ name }, index) {
  return `${["━━", "╍╍", "┅┅", "╌─"][index % 4]} ${name}`;
}

function scaleOf(series) {
  const all = series.flatMap((one) => one.points);
  const xs = all.map(([x]) => x);
  const ys = all.map(([, y]) => y);
  const [low, high] = widened(Math.min(...ys), Math.max(...ys));
  const [from, to] = [Math.min(...xs), Math.max(...xs)];
  const span = to - from || 1;
  return {
    low,
    high,
    from,
    to,
    holds: (x) => x >= from && x <= to,
    x: (x) => LEFT + ((x - from) / span) * (WIDTH - LEFT - RIGHT),
    y: (y) => TOP + ((high - y) / (high - low)) * (HEIGHT - TOP - BOTTOM),
  };
}

function widened(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.05;
  return [low - room, high + room];
}

function axes(scale, format) {
  const parts = [];
  for (let tick = 0; tick <= TICKS; tick += 1) {
    const value = scale.low + ((scale.high - scale.low) * tick) / TICKS;
    const y = scale.y(value);
    parts.push(s("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: y, y2: y }));
    parts.push(s("text", { x: LEFT - 6, y: y + 4, "text-anchor": "end" }, format(value)));
  }
  const bottom = HEIGHT - 8;
  parts.push(s("text", { x: LEFT, y: bottom }, `round ${scale.from}`));
  parts.push(s("text", { x: WIDTH - RIGHT, y: bottom, "text-anchor": "end" }, `round ${scale.to}`));
  return parts;
}

function line({ points }, index, scale) {
  if (points.length === 1) {
    const [[x, y]] = points;
    return s("circle", { class: `series-dot series-${index % 4}`, cx: scale.x(x), cy: scale.y(y), r: 3 });
  }
  const path = points.map(([x, y]) => `${scale.x(x).toFixed(1)},${scale.y(y).toFixed(1)}`).join(" ");
  return s("polyline", { class: `series series-${index % 4}`, points: path });
}

function cross({ x, text }, scale) {
  return s("circle", { class: "mark", cx: scale.x(x), cy: TOP + 4, r: 4 }, s("title", {}, text));
}

function numbers(title, series, format, open) {
  const rounds = [...new Set(series.flatMap((one) => one.points.map(([x]) => x)))];
  rounds.sort((a, b) => b - a);
  const values = series.map((one) => new Map(one.points));
  const head = ["round", ...series.map((one) => one.name)].map((name) => h("th", { scope: "col" }, name));
  const body = rounds.slice(0, MOST_ROWS).map((round) =>
    h("tr", {}, h("td", {}, round), values.map((of) => h("td", {}, of.has(round) ? format(of.get(round)) : ""))),
  );
  const shown = h("table", { "aria-label": title }, h("thead", {}, h("tr", {}, head)), h("tbody", {}, body));
  return h("details", { open }, h("summary", {}, "Newest numbers"), h("div", { class: "wide" }, shown));
}

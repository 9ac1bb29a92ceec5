// Charts by hand: one SVG each, no library.

import { s, show } from "./dom.js";

const WIDTH = 760;
const HEIGHT = 260;
const LEFT = 62;
const RIGHT = 14;
const TOP = 12;
const BOTTOM = 28;
const MOST_DOTS = 3000; // more would only hide each other

/** Return a scatter of `points` ({x, y, label, open}) with a line of the best so far. */
export function bestSoFar(points, minimize) {
  const finite = points.filter((point) => Number.isFinite(point.y)).sort((a, b) => a.x - b.x);
  const svg = frame("Final result of each trial, and the best so far");
  if (finite.length === 0) return empty(svg, "No trial has a result yet.");
  const scale = scales(finite);
  axes(svg, scale);
  let best = null;
  let path = "";
  const steps = new Set();
  for (const point of finite) {
    const better = best === null || (minimize ? point.y < best : point.y > best);
    if (better) {
      path += best === null ? `M${scale.x(point.x)},${scale.y(point.y)}` : `H${scale.x(point.x)}V${scale.y(point.y)}`;
      best = point.y;
      steps.add(point);
    }
  }
  path += `H${scale.x(finite.at(-1).x)}`;
  svg.append(s("path", { class: "line", d: path }));
  const stride = Math.ceil(finite.length / MOST_DOTS);
  finite.forEach((point, i) => {
    if (i % stride && !steps.has(point)) return;
    const dot = s("circle", {
      class: steps.has(point) ? "best" : "dot", r: steps.has(point) ? 3.5 : 2.6,
      cx: scale.x(point.x), cy: scale.y(point.y), click: point.open,
    }, s("title", {}, point.label));
    svg.append(dot);
  });
  return svg;
}

/** Return a line through `values`, one per report. */
export function course(values) {
  const points = values.map((y, x) => ({ x, y })).filter((point) => Number.isFinite(point.y));
  const svg = frame("Intermediate results");
  if (points.length === 0) return empty(svg, "No intermediate results.");
  const scale = scales(points);
  axes(svg, scale);
  svg.append(s("path", { class: "line", d: "M" + points.map((p) => `${scale.x(p.x)},${scale.y(p.y)}`).join("L") }));
  points.forEach((p) => svg.append(s("circle", { class: "best", r: 2.5, cx: scale.x(p.x), cy: scale.y(p.y) }, s("title", {}, `${p.x}: ${show(p.y)}`))));
  return svg;
}

function frame(label) {
  return s("svg", { class: "chart", viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": label });
}

function empty(svg, text) {
  svg.append(s("text", { x: WIDTH / 2, y: HEIGHT / 2, "text-anchor": "middle" }, text));
  return svg;
}

function scales(points) {
  const xs = points.map((point) => point.x);
  const ys = points.map((point) => point.y);
  const range = (values) => values.reduce(([low, high], v) => [Math.min(low, v), Math.max(high, v)], [Infinity, -Infinity]);
  const [x0, x1] = range(xs);
  let [y0, y1] = range(ys);
  if (y0 === y1) [y0, y1] = [y0 - 1, y1 + 1];
  const pad = (y1 - y0) * 0.06;
  [y0, y1] = [y0 - pad, y1 + pad];
  return {
    x0, x1, y0, y1,
    x: (x) => (LEFT + ((x - x0) / (x1 - x0 || 1)) * (WIDTH - LEFT - RIGHT)).toFixed(1),
    y: (y) => (HEIGHT - BOTTOM - ((y - y0) / (y1 - y0)) * (HEIGHT - TOP - BOTTOM)).toFixed(1),
  };
}

function axes(svg, scale) {
  for (let i = 0; i <= 4; i += 1) {
    const value = scale.y0 + ((scale.y1 - scale.y0) * i) / 4;
    svg.append(
      s("line", { class: "axis", x1: LEFT, x2: WIDTH - RIGHT, y1: scale.y(value), y2: scale.y(value) }),
      s("text", { x: LEFT - 8, y: Number(scale.y(value)) + 4, "text-anchor": "end" }, Number(value.toPrecision(3)).toString()),
    );
  }
  const whole = new Set([0, 0.25, 0.5, 0.75, 1].map((part) => Math.round(scale.x0 + (scale.x1 - scale.x0) * part)));
  for (const value of whole) {
    svg.append(s("text", { x: scale.x(value), y: HEIGHT - 8, "text-anchor": "middle" }, String(value)));
  }
}

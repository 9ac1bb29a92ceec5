// Makes elements and words. All text goes in as text nodes: nothing a trial says becomes markup.

const SVG = "http://www.w3.org/2000/svg";

/** Return an element; attributes that are null or false are left out, functions listen. */
export function h(tag, attributes = {}, ...children) {
  return build(document.createElement(tag), attributes, children);
}

/** Return an SVG element. */
export function s(tag, attributes = {}, ...children) {
  return build(document.createElementNS(SVG, tag), attributes, children);
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(2).filter((child) => child !== null && child !== undefined));
  return element;
}

/** Return a number as a person reads it; other values as text. */
export function show(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return typeof value === "string" ? value : JSON.stringify(value);
  if (Number.isInteger(value)) return String(value);
  const size = Math.abs(value);
  return size >= 1e5 || size < 1e-4 ? value.toExponential(4) : String(Number(value.toPrecision(6)));
}

/** Return a duration in seconds as `1h 02m 03s`; never negative. */
export function showDuration(seconds) {
  const left = Math.max(0, seconds);
  if (left < 10) return `${left.toFixed(left < 1 ? 2 : 1)}s`;
  const whole = Math.round(left);
  const parts = [Math.floor(whole / 86400), Math.floor(whole / 3600) % 24, Math.floor(whole / 60) % 60, whole % 60];
  const first = parts.findIndex((part) => part > 0);
  return parts.map((part, i) => `${part}${"dhms"[i]}`).slice(first).join(" ");
}

/** Return an instant in local time. */
export function showTime(milliseconds) {
  return milliseconds ? new Date(milliseconds).toLocaleString() : "–";
}

/** Return [name, value] for each parameter; a nested choice `{_name, a}` becomes `outer` and `outer/a`. */
export function flat(parameters, prefix = "") {
  if (parameters === null || typeof parameters !== "object" || Array.isArray(parameters)) return prefix ? [[prefix, parameters]] : [];
  return Object.entries(parameters).flatMap(([name, value]) => {
    const full = name === "_name" && prefix ? prefix : prefix ? `${prefix}/${name}` : name;
    return value !== null && typeof value === "object" && !Array.isArray(value) ? flat(value, full) : [[full, value]];
  });
}

/** Return the coloured name of a state. */
export function pill(state) {
  return h("span", { class: "pill", "data-state": state }, state);
}

/** Return the number a trial is judged by, or null. */
export function metricNumber(data) {
  const value = data !== null && typeof data === "object" ? data.default : data;
  const number = typeof value === "string" ? { Infinity: Infinity, "-Infinity": -Infinity }[value] : value;
  return typeof number === "number" && !Number.isNaN(number) ? number : null;
}

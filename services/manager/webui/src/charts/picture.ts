// Pictures: shapes in CSS px, drawn on a canvas or written as SVG.

export interface Style {
  stroke?: string;
  fill?: string;
  /** Width of the stroke; 1 by default. */
  width?: number;
  dash?: readonly number[];
  opacity?: number;
}

export type Point = readonly [number, number];
export type Symbol = "disc" | "ring" | "cross" | "square";
/** Filling of a rectangle, which tells states apart without colour. */
export type Pattern = "solid" | "hatched" | "outlined" | "dotted";

export type Shape =
  | ({ kind: "line"; points: readonly Point[] } & Style)
  | ({ kind: "rect"; x: number; y: number; width: number; height: number } & Filling)
  | { kind: "mark"; x: number; y: number; size: number; symbol: Symbol; colour: string }
  | Text
  | { kind: "clip"; x: number; y: number; width: number; height: number; shapes: Shape[] };

interface Filling {
  colour: string;
  pattern: Pattern;
}

interface Text {
  kind: "text";
  x: number;
  y: number;
  text: string;
  colour: string;
  /** Where `x` is in the text; `y` is its middle. */
  anchor: "start" | "middle" | "end";
  /** In px. */
  size?: number;
  bold?: boolean;
  /** Whether it is turned to run from bottom to top. */
  turned?: boolean;
}

export interface Picture {
  width: number;
  height: number;
  shapes: Shape[];
}

/** A picture and the place of its top left corner. */
export interface Placed {
  picture: Picture;
  left: number;
  top: number;
}

export const TEXT_PX = 12;
/** Distance between the lines or dots of a pattern, in px. */
const GRAIN_PX = 5;
const STROKE_PX = 1.5;

/** Return pictures as one SVG document with the given description. */
export function svgOf(
  pictures: readonly Placed[],
  page: { width: number; height: number; background: string; font: string; title: string },
): string {
  const patterns = new Map<string, string>();
  const body = pictures
    .map(
      ({ picture, left, top }) =>
        `<g transform="translate(${short(left)} ${short(top)})">` +
        picture.shapes.map((one) => shapeSvg(one, patterns)).join("") +
        "</g>",
    )
    .join("\n");
  const [width, height] = [Math.ceil(page.width), Math.ceil(page.height)];
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" width="${width}" height="${height}" ` +
    `viewBox="0 0 ${width} ${height}" font-family="${escaped(page.font)}">\n` +
    `<title>${escaped(page.title)}</title>\n` +
    (patterns.size ? `<defs>${[...patterns.values()].join("")}</defs>\n` : "") +
    `<rect width="${width}" height="${height}" ${paint("fill", page.background)}/>\n` +
    `${body}\n</svg>\n`
  );
}

function shapeSvg(shape: Shape, patterns: Map<string, string>): string {
  switch (shape.kind) {
    case "line": {
      const points = shape.points.map(([x, y]) => `${short(x)},${short(y)}`).join(" ");
      return `<polyline points="${points}" ${styleSvg(shape)}/>`;
    }
    case "rect":
      return (
        `<rect x="${short(shape.x)}" y="${short(shape.y)}" width="${short(shape.width)}" ` +
        `height="${short(shape.height)}" ${fillingSvg(shape, patterns)}/>`
      );
    case "mark":
      return markSvg(shape);
    case "text":
      return textSvg(shape);
    case "clip": {
      const { x, y, width, height } = shape;
      const box = [x, y, width, height].map(short);
      return (
        `<svg x="${box[0]}" y="${box[1]}" width="${box[2]}" height="${box[3]}" ` +
        `viewBox="${box.join(" ")}" overflow="hidden">` +
        shape.shapes.map((one) => shapeSvg(one, patterns)).join("") +
        "</svg>"
      );
    }
  }
}

function styleSvg({ stroke, fill, width = 1, dash, opacity }: Style): string {
  return [
    paint("fill", fill ?? "none"),
    paint("stroke", stroke ?? "none"),
    `stroke-width="${short(width)}" stroke-linejoin="round"`,
    dash?.length ? `stroke-dasharray="${dash.map(short).join(" ")}"` : "",
    opacity === undefined || opacity === 1 ? "" : `opacity="${short(opacity)}"`,
  ]
    .filter(Boolean)
    .join(" ");
}

function fillingSvg({ colour, pattern }: Filling, patterns: Map<string, string>): string {
  if (pattern === "solid") return paint("fill", colour);
  const edge = `${paint("stroke", colour)} stroke-width="${STROKE_PX}"`;
  if (pattern === "outlined") return `fill="none" ${edge}`;
  const key = `${pattern} ${colour}`;
  const id = `pattern-${[...patterns.keys(), key].indexOf(key)}`;
  const size = `width="${GRAIN_PX}" height="${GRAIN_PX}" patternUnits="userSpaceOnUse"`;
  const grain =
    pattern === "hatched"
      ? `<pattern id="${id}" ${size} patternTransform="rotate(45)">` +
        `<path d="M0 0V${GRAIN_PX}" ${paint("stroke", colour)} stroke-width="4"/></pattern>`
      : `<pattern id="${id}" ${size}><circle cx="2.5" cy="2.5" r="1.2" ${paint("fill", colour)}/></pattern>`;
  patterns.set(key, grain);
  return `fill="url(#${id})" ${edge}`;
}

function markSvg({ x, y, size, symbol, colour }: Shape & { kind: "mark" }): string {
  const half = size / 2;
  const edge = `fill="none" ${paint("stroke", colour)} stroke-width="${STROKE_PX}"`;
  const [left, top] = [short(x - half), short(y - half)];
  const [right, bottom] = [short(x + half), short(y + half)];
  switch (symbol) {
    case "disc":
      return `<circle cx="${short(x)}" cy="${short(y)}" r="${short(half)}" ${paint("fill", colour)}/>`;
    case "ring":
      return `<circle cx="${short(x)}" cy="${short(y)}" r="${short(half)}" ${edge}/>`;
    case "square":
      return `<rect x="${left}" y="${top}" width="${short(size)}" height="${short(size)}" ${edge}/>`;
    case "cross":
      return `<path d="M${left} ${top}L${right} ${bottom}M${left} ${bottom}L${right} ${top}" ${edge}/>`;
  }
}

function textSvg({ x, y, text, colour, anchor, size, bold, turned }: Text): string {
  const turn = turned ? ` transform="rotate(-90 ${short(x)} ${short(y)})"` : "";
  return (
    `<text x="${short(x)}" y="${short(y)}" text-anchor="${anchor}" dominant-baseline="central" ` +
    `font-size="${size ?? TEXT_PX}"${bold ? ' font-weight="600"' : ""} ${paint("fill", colour)}${turn}>` +
    `${escaped(text)}</text>`
  );
}

/** Return the attributes of a colour; opacity has its own, which every viewer of SVG knows. */
function paint(name: "fill" | "stroke", colour: string): string {
  const found = /^rgba\(([^)]*),\s*([\d.]+)\)$/.exec(colour);
  if (!found) return `${name}="${escaped(colour)}"`;
  return `${name}="rgb(${found[1]})" ${name}-opacity="${found[2]}"`;
}

function short(value: number): string {
  return String(Math.round(value * 100) / 100);
}

/** Return text as content or attribute of XML, without characters that XML forbids. */
export function escaped(text: string): string {
  return text
    .replace(/[\u0000-\u0008\u000b\u000c\u000e-\u001f\ufffe\uffff]/g, "\ufffd")
    .replaceAll("&", "&amp;")
    .replaceAll("<", "&lt;")
    .replaceAll(">", "&gt;")
    .replaceAll('"', "&quot;");
}

/** Draw a picture on a canvas whose unit is the CSS px. */
export function drawPicture(
  context: CanvasRenderingContext2D,
  picture: Picture,
  font: string,
): void {
  for (const shape of picture.shapes) drawShape(context, shape, font);
}

function drawShape(context: CanvasRenderingContext2D, shape: Shape, font: string): void {
  context.save();
  switch (shape.kind) {
    case "line":
      drawLine(context, shape);
      break;
    case "rect":
      drawRect(context, shape);
      break;
    case "mark":
      drawMark(context, shape);
      break;
    case "text":
      context.fillStyle = shape.colour;
      context.font = `${shape.bold ? "600 " : ""}${shape.size ?? TEXT_PX}px ${font}`;
      context.textAlign = shape.anchor === "middle" ? "center" : shape.anchor;
      context.textBaseline = "middle";
      context.translate(shape.x, shape.y);
      if (shape.turned) context.rotate(-Math.PI / 2);
      context.fillText(shape.text, 0, 0);
      break;
    case "clip":
      context.beginPath();
      context.rect(shape.x, shape.y, shape.width, shape.height);
      context.clip();
      for (const one of shape.shapes) drawShape(context, one, font);
      break;
  }
  context.restore();
}

function drawLine(
  context: CanvasRenderingContext2D,
  { points, stroke, fill, width = 1, dash = [], opacity = 1 }: Shape & { kind: "line" },
): void {
  context.beginPath();
  points.forEach(([x, y], i) => (i ? context.lineTo(x, y) : context.moveTo(x, y)));
  context.globalAlpha = opacity;
  context.lineWidth = width;
  context.lineJoin = "round";
  context.setLineDash([...dash]);
  if (fill) {
    context.fillStyle = fill;
    context.fill();
  }
  if (stroke) {
    context.strokeStyle = stroke;
    context.stroke();
  }
}

function drawRect(
  context: CanvasRenderingContext2D,
  { x, y, width, height, colour, pattern }: Shape & { kind: "rect" },
): void {
  context.fillStyle = colour;
  context.strokeStyle = colour;
  if (pattern === "solid") {
    context.fillRect(x, y, width, height);
    return;
  }
  context.lineWidth = STROKE_PX;
  context.strokeRect(x, y, width, height);
  if (pattern === "outlined") return;
  context.beginPath();
  context.rect(x, y, width, height);
  context.clip();
  context.beginPath();
  if (pattern === "hatched") {
    context.lineWidth = 3;
    // From beyond the left edge, so that the lines cover the whole height.
    for (let at = x - height; at < x + width; at += GRAIN_PX * Math.SQRT2) {
      context.moveTo(at, y + height);
      context.lineTo(at + height, y);
    }
    context.stroke();
  } else {
    for (let across = x + 2.5; across < x + width; across += GRAIN_PX)
      for (let down = y + 2.5; down < y + height; down += GRAIN_PX)
        context.rect(across - 1, down - 1, 2, 2);
    context.fill();
  }
}

function drawMark(
  context: CanvasRenderingContext2D,
  { x, y, size, symbol, colour }: Shape & { kind: "mark" },
): void {
  const half = size / 2;
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = STROKE_PX;
  context.beginPath();
  if (symbol === "square") context.rect(x - half, y - half, size, size);
  else if (symbol === "cross") {
    context.moveTo(x - half, y - half);
    context.lineTo(x + half, y + half);
    context.moveTo(x - half, y + half);
    context.lineTo(x + half, y - half);
  } else context.arc(x, y, half, 0, 2 * Math.PI);
  if (symbol === "disc") context.fill();
  else context.stroke();
}

// Text of a program for a terminal, as styled lines: colours, and without overwritten text.

/** Look of a piece of text. Colours are those of a terminal, from 0 (black) to 7 (white). */
export interface TextStyle {
  colour: number | null;
  background: number | null;
  bold: boolean;
  dim: boolean;
  italic: boolean;
  underline: boolean;
}

/** A piece of a line; null: plain. */
export interface Span {
  text: string;
  style: TextStyle | null;
}

/** A line as its spans; adjacent ones differ in style. */
export type Line = Span[];

/** Escape sequences: colours and cursor (CSI), titles and links (OSC), and two-character ones. */
const ESCAPE = /\u001b(?:\[([0-?]*)[ -/]*([@-~])|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;
const PLAIN: TextStyle = {
  ...{ colour: null, background: null, bold: false },
  ...{ dim: false, italic: false, underline: false },
};
/** Maximum number of styled spans; older lines beyond it are shown plain. */
const MAX_SPANS = 20_000;

/**
 * Return what a terminal would show: a carriage return begins its line anew, as progress bars do.
 *
 * What the new text does not cover stays, unless an escape sequence erases it.
 */
export function terminalText(text: string): string {
  if (!/[\r\u001b]/.test(text)) return text;
  return terminalLines(text).map(lineText).join("\n");
}

/** Return the text of a line without its styles. */
export function lineText(line: Line): string {
  return line.map((span) => span.text).join("");
}

/** Return the lines that a terminal would show, with their styles. */
export function terminalLines(text: string): Line[] {
  if (!/[\r\u001b]/.test(text)) return text.split("\n").map(plainLine);
  let style: TextStyle | null = null;
  const lines = text.split("\n").map((line) => {
    if (!/[\r\u001b]/.test(line)) return line ? [{ text: line, style }] : [];
    const parts = line.split("\r").map((one) => {
      const part = partOf(one, style);
      style = part.after;
      return part;
    });
    return overwritten(parts);
  });
  return limited(lines, MAX_SPANS);
}

function plainLine(text: string): Line {
  return text ? [{ text, style: null }] : [];
}

/** Text between two carriage returns. */
interface Part {
  spans: Span[];
  /** Whether it erases the rest of the line. */
  erases: boolean;
  /** Style after it. */
  after: TextStyle | null;
}

function partOf(text: string, before: TextStyle | null): Part {
  const part: Part = { spans: [], erases: false, after: before };
  let from = 0;
  for (const found of text.matchAll(ESCAPE)) {
    push(part.spans, text.slice(from, found.index), part.after);
    from = found.index + found[0].length;
    if (found[2] === "m") part.after = styleAfter(part.after, found[1] ?? "");
    // Erase to the end of the line, or all of it.
    if (found[2] === "K") part.erases = true;
  }
  push(part.spans, text.slice(from), part.after);
  return part;
}

/** Append text, to the last span if it has the same style. */
function push(spans: Span[], text: string, style: TextStyle | null): void {
  if (!text) return;
  const last = spans.at(-1);
  if (last && sameStyle(last.style, style)) last.text += text;
  else spans.push({ text, style });
}

/** Return the line that remains of parts that overwrite each other, the newest first. */
function overwritten(parts: readonly Part[]): Line {
  const line: Line = [];
  let length = 0;
  // From the newest part on, each older one adds what sticks out: linear in the line's length.
  for (const part of [...parts].reverse()) {
    let covered = length;
    for (const { text, style } of part.spans) {
      const rest = text.slice(covered);
      covered = Math.max(0, covered - text.length);
      push(line, rest, style);
      length += rest.length;
    }
    if (part.erases) break;
  }
  return line;
}

function sameStyle(a: TextStyle | null, b: TextStyle | null): boolean {
  if (a === b) return true;
  if (a === null || b === null) return false;
  return (Object.keys(PLAIN) as (keyof TextStyle)[]).every((key) => a[key] === b[key]);
}

/** Return the style after the codes of a sequence (SGR); null if nothing is special. */
export function styleAfter(before: TextStyle | null, text: string): TextStyle | null {
  const codes = text.split(/[;:]/).map(Number);
  const style: TextStyle = { ...(before ?? PLAIN) };
  for (let i = 0; i < codes.length; i += 1) {
    const code = codes[i]!;
    if (code === 38 || code === 48) {
      const { colour, length } = longColour(codes, i + 1);
      if (code === 38) style.colour = colour;
      else style.background = colour;
      i += length;
    } else Object.assign(style, changeOf(code));
  }
  return sameStyle(style, PLAIN) ? null : style;
}

function changeOf(code: number): Partial<TextStyle> {
  switch (code) {
    case 0:
      return PLAIN;
    case 1:
      return { bold: true };
    case 2:
      return { dim: true };
    case 3:
      return { italic: true };
    case 4:
      return { underline: true };
    case 22:
      return { bold: false, dim: false };
    case 23:
      return { italic: false };
    case 24:
      return { underline: false };
    case 39:
      return { colour: null };
    case 49:
      return { background: null };
    default:
      // Bright colours are shown as the others, which have contrast in both themes.
      if (code >= 30 && code <= 37) return { colour: code - 30 };
      if (code >= 90 && code <= 97) return { colour: code - 90 };
      if (code >= 40 && code <= 47) return { background: code - 40 };
      if (code >= 100 && code <= 107) return { background: code - 100 };
      return {};
  }
}

/** Return the nearest colour of a palette's or an RGB one from `at`, and how many codes name it. */
function longColour(codes: number[], at: number): { colour: number | null; length: number } {
  if (codes[at] === 5) return { colour: paletteColour(codes[at + 1] ?? 0), length: 2 };
  if (codes[at] === 2) {
    const [red = 0, green = 0, blue = 0] = codes.slice(at + 1, at + 4);
    return { colour: nearest(red, green, blue), length: 4 };
  }
  return { colour: null, length: codes.length };
}

/** Levels of the colours of the cube in a palette of 256. */
const LEVELS = [0, 95, 135, 175, 215, 255];

function paletteColour(index: number): number | null {
  if (index < 16) return index % 8;
  if (index >= 232) return null; // a grey
  const at = index - 16;
  return nearest(LEVELS[Math.floor(at / 36)]!, LEVELS[Math.floor(at / 6) % 6]!, LEVELS[at % 6]!);
}

/** Return the colour of the same hue; null for a grey. */
function nearest(red: number, green: number, blue: number): number | null {
  const most = Math.max(red, green, blue);
  const least = Math.min(red, green, blue);
  if (most - least < 40) return null;
  const middle = (most + least) / 2;
  return (red > middle ? 1 : 0) + (green > middle ? 2 : 0) + (blue > middle ? 4 : 0);
}

/** Return lines of which the newest have at most `most` styled spans; older ones are plain. */
export function limited(lines: Line[], most: number): Line[] {
  let count = 0;
  return lines
    .reduceRight<Line[]>((found, line) => {
      const styled = line.filter((span) => span.style !== null).length;
      count += styled;
      found.push(styled && count > most ? plainLine(lineText(line)) : line);
      return found;
    }, [])
    .reverse();
}

/** Return lines as few spans: those of equal style are joined over the ends of lines. */
export function joined(lines: readonly Line[]): Span[] {
  const spans: Span[] = [];
  lines.forEach((line, i) => {
    if (i > 0) push(spans, "\n", null);
    for (const { text, style } of line) push(spans, text, style);
  });
  return spans;
}

// Window of a log: the part of it that the page holds, by byte offsets.

/** Bytes that one request fetches. */
export const PART_BYTES = 256 * 1024;
/** Maximum number of characters that a followed window holds; its oldest lines are dropped. */
export const MAX_CHARACTERS = 1_000_000;

export interface LogWindow {
  /** Offset of the first byte that is shown. */
  start: number;
  /** Offset behind the last byte. */
  end: number;
  text: string;
}

export const EMPTY: LogWindow = { start: 0, end: 0, text: "" };

/** Range of a response, from its header `Content-Range`; null without one. */
export function rangeOf(header: string | null): { start: number; total: number } | null {
  const found = /^bytes (\d+)-\d+\/(\d+)$/.exec(header ?? "");
  return found ? { start: Number(found[1]), total: Number(found[2]) } : null;
}

const NEWLINE = 10;
const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes);

/** Most bytes of a character in UTF-8. */
const CHARACTER_BYTES = 4;
/** Whether a byte continues a character. */
const continues = (byte: number | undefined) => ((byte ?? 0) & 0xc0) === 0x80;

/** Return the number of bytes that belong to a character before the part. */
function cutBegin(bytes: Uint8Array): number {
  let count = 0;
  while (count < CHARACTER_BYTES - 1 && continues(bytes[count])) count += 1;
  return count;
}

/** Return the length of a part without a character of which the end is missing. */
function wholeLength(bytes: Uint8Array): number {
  let start = bytes.length - 1;
  while (bytes.length - start < CHARACTER_BYTES && continues(bytes[start])) start -= 1;
  const lead = bytes[start] ?? 0;
  const length = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : lead >= 0xc0 ? 2 : 1;
  return start + length > bytes.length ? start : bytes.length;
}

/**
 * Return the window of a part that begins at `start`; cut characters at its begin and end are left
 * out, and a cut first line if `cutLine` says that there is one.
 */
export function windowOf(bytes: Uint8Array, start: number, cutLine = start > 0): LogWindow {
  const newline = cutLine ? bytes.indexOf(NEWLINE) : -1;
  const whole = newline >= 0 && newline < bytes.length - 1;
  // A part within one long line is shown as it is.
  const skipped = whole ? newline + 1 : start > 0 ? cutBegin(bytes) : 0;
  const length = wholeLength(bytes);
  return {
    start: start + skipped,
    end: start + length,
    text: decode(bytes.subarray(skipped, length)),
  };
}

/** Return the range to fetch before a window; null at the begin of the log. */
export function earlier({ start }: LogWindow): [number, number] | null {
  return start === 0 ? null : [Math.max(0, start - PART_BYTES), start];
}

/** Return a window with the part before it; `bytes` end where the window begins. */
export function prepended(window: LogWindow, bytes: Uint8Array): LogWindow {
  const before = windowOf(bytes, window.start - bytes.length);
  return { ...window, start: before.start, text: before.text + window.text };
}

/** Return a window with text that follows it; the oldest lines beyond the limit are dropped. */
export function appended(
  window: LogWindow,
  text: string,
  most: number = MAX_CHARACTERS,
): LogWindow {
  const whole = window.text + text;
  const end = window.end + byteLength(text);
  if (whole.length <= most) return { ...window, end, text: whole };
  const newline = whole.indexOf("\n", whole.length - most);
  const cut = newline < 0 ? whole.length - most : newline + 1;
  return { start: window.start + byteLength(whole.slice(0, cut)), end, text: whole.slice(cut) };
}

function byteLength(text: string): number {
  return new TextEncoder().encode(text).length;
}

// Window of a log: the part of it that the page holds, by byte offsets.

/** Bytes that one request fetches. */
export const PART_BYTES = 256 * 1024;
/** Maximum number of characters that a followed window holds; its oldest lines are dropped. */
export const MAX_CHARACTERS = 1_000_000;

/** Part of a log: bytes and their text, which has another length where they are no UTF-8. */
interface Piece {
  bytes: Uint8Array;
  text: string;
}

export interface LogWindow {
  /** Offset of the first byte that is shown. */
  start: number;
  /** Offset behind the last byte. */
  end: number;
  text: string;
  /** What the text was made of, in order. */
  pieces: readonly Piece[];
}

export const EMPTY: LogWindow = { start: 0, end: 0, text: "", pieces: [] };

/** Bytes below which a piece is joined with the next one. */
const PIECE_BYTES = 16 * 1024;

/** Range of a response, from its header `Content-Range`; null without one. */
export function rangeOf(header: string | null): { start: number; total: number } | null {
  const found = /^bytes (\d+)-\d+\/(\d+)$/.exec(header ?? "");
  return found ? { start: Number(found[1]), total: Number(found[2]) } : null;
}

const NEWLINE = 10;
/** Return bytes with their text; a byte order mark stays, since it has bytes. */
const pieceOf = (bytes: Uint8Array): Piece => ({
  bytes,
  text: new TextDecoder("utf-8", { ignoreBOM: true }).decode(bytes),
});

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
  const piece = pieceOf(bytes.subarray(skipped, length));
  return { start: start + skipped, end: start + length, text: piece.text, pieces: [piece] };
}

/** Return a receiver of chunks that passes on parts with whole characters. */
export function wholeParts(onPart: (bytes: Uint8Array) => void): (chunk: Uint8Array) => void {
  let rest = new Uint8Array(0);
  return (chunk) => {
    const known = concatenated(rest, chunk);
    const length = wholeLength(known);
    rest = known.slice(length);
    if (length > 0) onPart(known.subarray(0, length));
  };
}

function concatenated(first: Uint8Array, second: Uint8Array): Uint8Array {
  const whole = new Uint8Array(first.length + second.length);
  whole.set(first);
  whole.set(second, first.length);
  return whole;
}

/** Return the range to fetch before a window; null at the begin of the log. */
export function earlier({ start }: LogWindow): [number, number] | null {
  return start === 0 ? null : [Math.max(0, start - PART_BYTES), start];
}

/** Return a window with the part before it; `bytes` end where the window begins. */
export function prepended(window: LogWindow, bytes: Uint8Array): LogWindow {
  const before = windowOf(bytes, window.start - bytes.length);
  return {
    ...window,
    start: before.start,
    text: before.text + window.text,
    pieces: [...before.pieces, ...window.pieces],
  };
}

/**
 * Return a window with the bytes that follow it, which are whole characters; the oldest lines beyond
 * the limit are dropped.
 */
export function appended(
  window: LogWindow,
  bytes: Uint8Array,
  most: number = MAX_CHARACTERS,
): LogWindow {
  const added = pieceOf(bytes);
  const pieces = [...window.pieces];
  const last = pieces.at(-1);
  if (last && last.bytes.length < PIECE_BYTES) {
    pieces.pop();
    pieces.push({ bytes: concatenated(last.bytes, bytes), text: last.text + added.text });
  } else {
    pieces.push(added);
  }
  const whole = {
    start: window.start,
    end: window.end + bytes.length,
    text: window.text + added.text,
    pieces,
  };
  return whole.text.length > most ? shortened(whole, whole.text.length - most) : whole;
}

/** Return a window without its oldest lines, which have at least so many characters. */
function shortened({ start, end, pieces }: LogWindow, characters: number): LogWindow {
  let dropped = 0;
  let excess = characters;
  for (const { bytes, text } of pieces) {
    const found = text.indexOf("\n", excess);
    if (text.length > excess && (found >= 0 || dropped === pieces.length - 1)) {
      const cut = found >= 0 ? lineEnd(bytes, text, found) : cutWithin(bytes, excess);
      const rest = pieceOf(bytes.subarray(cut));
      const kept = [rest, ...pieces.slice(dropped + 1)];
      return { start: start + cut, end, text: kept.map((one) => one.text).join(""), pieces: kept };
    }
    start += bytes.length;
    excess = Math.max(0, excess - text.length);
    dropped += 1;
  }
  return { ...EMPTY, start: end, end };
}

/** Return where the line that ends at `newline` in the text ends in the bytes. */
function lineEnd(bytes: Uint8Array, text: string, newline: number): number {
  // No sequence of bytes that is no UTF-8 has a newline in it, so both have the same ones.
  let at = -1;
  for (let place = text.indexOf("\n"); place >= 0 && place <= newline;) {
    at = bytes.indexOf(NEWLINE, at + 1);
    place = text.indexOf("\n", place + 1);
  }
  return at + 1;
}

/** Return a place in a long line; as many bytes as characters, of which each has at least one. */
function cutWithin(bytes: Uint8Array, characters: number): number {
  return characters + cutBegin(bytes.subarray(characters));
}

// Text of a program for a terminal, as lines to read: without escape sequences and overwritten text.

/** Escape sequences: colours and cursor (CSI), titles and links (OSC), and two-character ones. */
const ESCAPES = /\u001b(?:\[[0-?]*[ -/]*[@-~]|\][^\u0007\u001b]*(?:\u0007|\u001b\\)|[@-Z\\^_])/g;

/**
 * Return what a terminal would show: a carriage return begins its line anew, as progress bars do.
 *
 * What the new text does not cover stays, unless an escape sequence erases it.
 */
export function terminalText(text: string): string {
  if (!/[\r\u001b]/.test(text)) return text;
  return text
    .replaceAll("\u001b[K", "\u0000")
    .replace(ESCAPES, "")
    .split("\n")
    .map(terminalLine)
    .join("\n");
}

function terminalLine(line: string): string {
  if (!/[\r\u0000]/.test(line)) return line;
  let shown = "";
  // From the newest part on, each older one adds what sticks out: linear in the line's length.
  for (const part of line.split("\r").reverse()) {
    shown += part.replaceAll("\u0000", "").slice(shown.length);
    if (part.includes("\u0000")) break; // erased what was there before
  }
  return shown;
}

// Filling of bars on a canvas, which tells states apart without colour.

import type { Pattern } from "./picture";

/** Size of the tile of a pattern, in CSS px. */
const TILE_PX = 6;

/** Return a filling in the pixels of the screen; the colour itself where the pattern has none. */
export function canvasFilling(
  context: CanvasRenderingContext2D,
  colour: string,
  pattern: Pattern,
): string | CanvasPattern {
  if (pattern === "solid") return colour;
  if (pattern === "outlined") return "transparent";
  const size = Math.max(4, Math.round(TILE_PX * (devicePixelRatio || 1)));
  const tile = document.createElement("canvas");
  tile.width = size;
  tile.height = size;
  const ink = tile.getContext("2d")!;
  ink.fillStyle = colour;
  ink.strokeStyle = colour;
  if (pattern === "dotted") ink.fillRect(size / 4, size / 4, size / 2, size / 2);
  else {
    ink.lineWidth = size / 2.5;
    ink.beginPath();
    // Three lines, so that the corners of the tile are covered.
    for (const shift of [-size, 0, size]) {
      ink.moveTo(shift - 1, size + 1);
      ink.lineTo(shift + size + 1, -1);
    }
    ink.stroke();
  }
  return context.createPattern(tile, "repeat") ?? colour;
}

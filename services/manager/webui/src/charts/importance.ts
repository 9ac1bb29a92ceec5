// Picture of the importance of parameters: a bar each.

import type { Picture, Shape } from "./picture";

export interface Share {
  name: string;
  /** Share of the variance, from 0 to 1. */
  share: number;
  /** Whether it is that of no single parameter. */
  muted?: boolean;
}

const ROW_PX = 28;
const BAR_PX = 14;
/** Widths of the names and of the numbers. */
const NAME_PX = 200;
const NUMBER_PX = 80;
const MOST_WIDTH = 860;

/** Return the picture of shares in their order. */
export function importancePicture(
  shares: readonly Share[],
  room: number,
  colours: { ink: string; muted: string; track: string; bar: string },
): Picture {
  const width = Math.min(MOST_WIDTH, Math.max(NAME_PX + NUMBER_PX + 100, room));
  const track = width - NAME_PX - NUMBER_PX;
  const shapes = shares.flatMap(({ name, share, muted }, i): Shape[] => {
    const middle = i * ROW_PX + ROW_PX / 2;
    const bar = { x: NAME_PX, y: middle - BAR_PX / 2, height: BAR_PX, pattern: "solid" as const };
    const length = track * Math.max(0, Math.min(1, share));
    return [
      { kind: "rect", ...bar, width: track, colour: colours.track },
      { kind: "rect", ...bar, width: length, colour: muted ? colours.muted : colours.bar },
      ...textsOf(name, share, middle, width, muted ? colours.muted : colours.ink),
    ];
  });
  return { width, height: shares.length * ROW_PX, shapes };
}

function textsOf(name: string, share: number, y: number, width: number, colour: string): Shape[] {
  return [
    { kind: "text", x: NAME_PX - 12, y, text: name, anchor: "end", colour },
    { kind: "text", x: width, y, text: `${(share * 100).toFixed(1)} %`, anchor: "end", colour },
  ];
}

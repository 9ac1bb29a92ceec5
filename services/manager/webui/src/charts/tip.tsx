// Tooltip beside a place of a chart, on the side with more room.

import type { ComponentChildren } from "preact";

/** Distance from the place, in px. */
const GAP_PX = 14;

interface Props {
  x: number;
  y: number;
  /** Width of the chart. */
  width: number;
  children: ComponentChildren;
}

export function Tip({ x, y, width, children }: Props) {
  const side = x > width / 2 ? { right: `${width - x + GAP_PX}px` } : { left: `${x + GAP_PX}px` };
  return (
    <div class="tip" style={{ top: `${y}px`, ...side }}>
      {children}
    </div>
  );
}

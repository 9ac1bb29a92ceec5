// Height of the charts of a view: they fill the window.

import type { RefObject } from "preact";
import { useEffect, useState } from "preact/hooks";

/** Least height, and greatest: a taller chart shows no more. */
const LEAST_PX = 320;
const MOST_PX = 1_000;
/** Room for tabs and fields above the chart, and for legend and buttons below it. */
const AROUND_PX = 260;

/** Return the height of a chart in a window whose view begins at `top`. */
export function chartHeight(windowHeight: number, top: number): number {
  const room = windowHeight - Math.max(0, top) - AROUND_PX;
  return Math.round(Math.max(LEAST_PX, Math.min(MOST_PX, room)));
}

/** Return the height of the chart inside of an element; it follows the window. */
export function useChartHeight(box: RefObject<HTMLElement | null>): number {
  const [height, setHeight] = useState(() => chartHeight(innerHeight, 0));
  useEffect(() => {
    const measure = () => {
      const top = (box.current?.getBoundingClientRect().top ?? 0) + scrollY;
      setHeight(chartHeight(innerHeight, top));
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [box]);
  return height;
}

// Place of a menu below or above its button, so that all of it is on the screen.

export interface MenuPlace {
  /** Distance of the panel's left edge from the button's, in px. */
  shift: number;
  maxHeight: number;
  above: boolean;
}

/** Distance from the edges of the window, and between button and panel, in px. */
const EDGE_PX = 8;
const GAP_PX = 6;
/** Room below that is enough: a longer menu scrolls. */
const ENOUGH_PX = 280;
const MOST_PX = 520;

/** Return where the panel of a button goes; `align` names the edges that are in line. */
export function menuPlace(
  button: { left: number; right: number; top: number; bottom: number },
  panel: { width: number; height: number },
  screen: { width: number; height: number },
  align: "left" | "right",
): MenuPlace {
  const wanted = align === "right" ? button.right - panel.width : button.left;
  const most = screen.width - panel.width - EDGE_PX;
  const left = Math.max(EDGE_PX, Math.min(most, wanted));
  const below = screen.height - button.bottom - GAP_PX - EDGE_PX;
  const over = button.top - GAP_PX - EDGE_PX;
  const above = below < Math.min(panel.height, ENOUGH_PX) && over > below;
  return {
    shift: Math.round(left - button.left),
    maxHeight: Math.max(0, Math.min(MOST_PX, above ? over : below)),
    above,
  };
}

// Legend of the colour scale of lines.

import type { Mode } from "../state/objectives";

export function ColourScale({ mode }: { mode: Mode | null }) {
  return (
    <span>
      {mode ? "worst" : "smallest"} <i class="scale" /> {mode ? "best trial" : "largest"}
    </span>
  );
}

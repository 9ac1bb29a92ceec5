// Legend of the kinds of points, with the number of those that are no results.

import type { PointKind } from "../state/outcome";
import { POINT_LOOKS, POINT_ORDER } from "./series";

export function PointLegend({ kinds }: { kinds: readonly PointKind[] }) {
  return (
    <>
      {[...POINT_ORDER]
        .reverse()
        .map((kind) => ({ kind, number: kinds.filter((one) => one === kind).length }))
        .filter(({ number }) => number > 0)
        .map(({ kind, number }) => (
          <span key={kind}>
            <i class="symbol" data-symbol={POINT_LOOKS[kind].symbol ?? "dot"} data-kind={kind} />{" "}
            {POINT_LOOKS[kind].name}
            {kind === "result" ? "" : ` (${number.toLocaleString("en")})`}
          </span>
        ))}
    </>
  );
}

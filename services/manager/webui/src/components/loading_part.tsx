// Notice that a chart or list shows only a part while trials load.

import type { Store } from "../state/store";

export function LoadingPart({ store }: { store: Store }) {
  if (store.complete) return null;
  const loaded = store.trials.size.toLocaleString("en");
  const total = store.total ? ` of ${store.total.toLocaleString("en")}` : "";
  return (
    <p class="hint loading-part" role="status">
      Loading {loaded}
      {total} trials; until then only these are shown.
    </p>
  );
}

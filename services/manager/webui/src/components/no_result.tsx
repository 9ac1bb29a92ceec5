// Says that there is no result, or that the results are still on their way.

import type { Store } from "../state/store";

export function NoResult({ store }: { store: Store }) {
  return (
    <p class="empty" role="status">
      {store.judged ? "No trial has a result yet." : "Loading results…"}
    </p>
  );
}

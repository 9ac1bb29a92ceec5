// Placeholder for missing results: none yet, or still loading.

import type { Store } from "../state/store";

export function NoResult({ store }: { store: Store }) {
  return (
    <p class="empty" role="status">
      {store.complete ? "No trial has a result yet." : "Loading results…"}
    </p>
  );
}

// Link that opens the details of a trial.

import { useApp } from "../state/context";
import type { Trial } from "../state/trial";

export function TrialLink({ trial }: { trial: Trial }) {
  const { href, go } = useApp();
  return (
    <a
      href={href({ trial: trial.id })}
      class="mono"
      onClick={(event) => {
        if (event.metaKey || event.ctrlKey || event.shiftKey) return;
        event.preventDefault();
        go({ trial: trial.id });
      }}
    >
      {trial.id}
    </a>
  );
}

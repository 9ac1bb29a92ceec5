// Progress bars of the budgets, with their legends.

import { formatDuration } from "../format";
import { Progress } from "../components/progress";
import { StatePill } from "../components/state_pill";
import type { Store } from "../state/store";
import { LIVE, TRIAL_STATES, countEnded } from "../state/trial";

/** Bar of trials by state, as shares of the trial number. */
export function TrialsByState({ store }: { store: Store }) {
  const known = TRIAL_STATES.filter((state) => store.counts[state]).sort(
    (a, b) => Number(LIVE.has(a)) - Number(LIVE.has(b)),
  );
  const created = known.reduce((sum, state) => sum + store.counts[state]!, 0);
  const most = Number(store.profile!.params["maxTrialNumber"] ?? 0);
  const done = countEnded(store.counts);
  const whole = Math.max(most, created, 1);
  return (
    <>
      <Progress
        label="Trials"
        text={most ? `${done} of ${most} trials are done` : `${done} trials are done`}
        parts={known.map((state) => ({ state, part: store.counts[state]! / whole }))}
      />
      <p class="legend">
        {known.map((state) => (
          <span key={state}>
            <StatePill state={state} /> {store.counts[state]!.toLocaleString("en")}
          </span>
        ))}
        {known.length === 0 ? <span class="muted">No trial yet.</span> : null}
      </p>
    </>
  );
}

/** Bar of the used time; both values in seconds. */
export function TimeUsed({ used, limit }: { used: number; limit: number }) {
  const left = `${formatDuration(Math.max(0, Math.ceil(limit - used)))} left`;
  return (
    <>
      <Progress
        label="Time"
        text={`${formatDuration(used)} of ${formatDuration(limit)}, ${left}`}
        parts={[{ state: "TIME", part: used / limit }]}
      />
      <p class="legend">
        <span>{left}</span>
      </p>
    </>
  );
}

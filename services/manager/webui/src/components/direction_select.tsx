// Selection of the direction in which a metric improves.

import { type Goals, type Mode, modeOf } from "../state/objectives";

interface Props {
  goals: Goals;
  metric: string;
  choose: (metric: string, mode: Mode | "") => void;
}

export function DirectionSelect({ goals, metric, choose }: Props) {
  const mode = modeOf(goals, metric);
  return (
    <label>
      Best is{" "}
      <select
        value={mode ?? ""}
        onChange={(event) => choose(metric, event.currentTarget.value as Mode | "")}
      >
        <option value="maximize">largest</option>
        <option value="minimize">smallest</option>
        {mode === null ? <option value="">not known</option> : null}
      </select>
    </label>
  );
}

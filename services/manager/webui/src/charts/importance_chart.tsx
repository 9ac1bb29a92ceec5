// Bar chart of the importance of each parameter.

import { useMemo } from "preact/hooks";

import type { Importance } from "../api/records";
import { count } from "../format";
import type { Store } from "../state/store";
import { useAnalysis } from "./analysis";

export function ImportanceChart({ store, metric }: { store: Store; metric: string }) {
  const results = useMemo(
    () => [...store.trials.values()].filter((trial) => trial.metrics[metric] !== undefined).length,
    [store.version, metric],
  );
  const path =
    metric === "default" ? "importance" : `importance?metric=${encodeURIComponent(metric)}`;
  const { analysis, problem } = useAnalysis<Importance>(store, path, results);
  if (problem)
    return (
      <p class="empty" role="status">
        {problem}
      </p>
    );
  if (analysis === null)
    return (
      <p class="empty" role="status">
        Computing…
      </p>
    );
  if (analysis.parameters.length === 0)
    return <p class="empty">There are too few results to estimate the importance.</p>;
  const parameters = [...analysis.parameters].sort((a, b) => b.share - a.share);
  return (
    <figure class="chart">
      <figcaption class="legend">
        <span>
          Share of the variance of the result that each parameter explains, based on{" "}
          {count(analysis.trials, "trial")}
        </span>
      </figcaption>
      <table class="importance">
        <thead class="visually-hidden">
          <tr>
            <th scope="col">Parameter</th>
            <th scope="col">Share</th>
          </tr>
        </thead>
        <tbody>
          {parameters.map(({ name, share }) => (
            <Bar key={name} name={name} share={share} />
          ))}
          {analysis.interactions > 0.001 ? (
            <Bar name="interactions" share={analysis.interactions} muted />
          ) : null}
        </tbody>
      </table>
    </figure>
  );
}

function Bar({ name, share, muted = false }: { name: string; share: number; muted?: boolean }) {
  return (
    <tr class={muted ? "muted" : undefined}>
      <th scope="row" class={muted ? undefined : "mono"}>
        {name}
      </th>
      <td>
        <span class="importance-track">
          <span
            class="importance-bar"
            style={{ width: `${Math.max(0.3, Math.min(1, share) * 100)}%` }}
          />
        </span>
        <span class="importance-share">{(share * 100).toFixed(1)} %</span>
      </td>
    </tr>
  );
}

// Bar chart of the importance of each parameter.

import { useEffect, useMemo, useRef } from "preact/hooks";

import type { Importance } from "../api/records";
import { count } from "../format";
import type { Store } from "../state/store";
import { useAnalysis } from "./analysis";
import { offerPicture } from "./chart_export";
import { type Share, importancePicture } from "./importance";
import { colourOf } from "./plot";

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
  const shares: Share[] = parameters.map(({ name, share }) => ({ name, share }));
  if (analysis.interactions > LEAST_SHARE)
    shares.push({ name: "interactions", share: analysis.interactions, muted: true });
  return <Shares shares={shares} trials={analysis.trials} />;
}

/** Least share of interactions that is shown. */
const LEAST_SHARE = 0.001;

function Shares({ shares, trials }: { shares: Share[]; trials: number }) {
  const box = useRef<HTMLElement>(null);
  const latest = useRef(shares);
  latest.current = shares;
  useEffect(() => {
    const element = box.current!;
    const read = (name: string) => colourOf(element, name);
    return offerPicture(element, () =>
      importancePicture(latest.current, element.clientWidth, {
        ink: read("--ink"),
        muted: read("--muted"),
        track: read("--shade"),
        bar: read("--accent"),
      }),
    );
  }, []);
  return (
    <figure class="chart" ref={box}>
      <figcaption class="legend">
        <span>
          Share of the variance of the result that each parameter explains, based on{" "}
          {count(trials, "trial")}
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
          {shares.map((one) => (
            <Bar key={one.name} {...one} />
          ))}
        </tbody>
      </table>
    </figure>
  );
}

function Bar({ name, share, muted = false }: Share) {
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

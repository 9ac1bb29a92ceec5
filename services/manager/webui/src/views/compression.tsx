// Overview of a compression job: steps, results before and after, sparsity of each layer.

import { useMemo } from "preact/hooks";

import type { JsonObject } from "../api/records";
import { formatShort, formatValue } from "../format";
import { StatePill } from "../components/state_pill";
import { TrialLink } from "../components/trial_link";
import { type Step, layersOf, stepsOf } from "../state/compression";
import type { Store } from "../state/store";

export function CompressionSteps({ store, job }: { store: Store; job: JsonObject }) {
  const steps = useMemo(() => stepsOf(job, store.trials.values()), [store.version, job]);
  return (
    <>
      <section class="card w8" aria-labelledby="steps">
        <h2 id="steps">Steps</h2>
        <Steps steps={steps} />
      </section>
      <section class="card w4" aria-labelledby="outcome">
        <h2 id="outcome">Before and after the speedup</h2>
        <Outcome steps={steps} />
      </section>
      <section class="card w12" aria-labelledby="layers">
        <h2 id="layers">Sparsity of each layer</h2>
        <Layers steps={steps} />
      </section>
    </>
  );
}

function Steps({ steps }: { steps: Step[] }) {
  return (
    <div class="scroll">
      <table>
        <thead>
          <tr>
            <th scope="col" class="number">
              Step
            </th>
            <th scope="col">Kind</th>
            <th scope="col">State</th>
            <th scope="col">Trial</th>
            <th scope="col" class="number">
              Metric
            </th>
            <th
              scope="col"
              class="number"
              title="Mean over the pruned weights, whatever their size"
            >
              Mean sparsity
            </th>
            <th scope="col" class="number">
              Parameters
            </th>
          </tr>
        </thead>
        <tbody>
          {steps.map(({ number, kind, trial, sparsity }) => (
            <tr key={number}>
              <td class="number">{number}</td>
              <td>{kind}</td>
              <td>{trial ? <StatePill state={trial.state} /> : "pending"}</td>
              <td>{trial ? <TrialLink trial={trial} /> : "–"}</td>
              <td class="number">{formatValue(trial?.value)}</td>
              <td class="number">{percent(sparsity)}</td>
              <td class="number">{formatValue(trial?.metrics["parameters"])}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

/** The last pruning step beside the speedup, which removes what is masked. */
function Outcome({ steps }: { steps: Step[] }) {
  const speedup = steps.find(({ kind }) => kind === "speedup");
  const after = speedup?.trial?.metrics;
  const before = steps.findLast(({ kind }) => kind === "prune")?.trial?.metrics;
  if (!speedup) return <p class="empty">This job has no speedup: pruned weights stay as zeros.</p>;
  if (!after || !before || after["default"] === undefined)
    return <p class="empty">The speedup has not ended.</p>;
  const rows: [string, number | undefined, number | undefined, string][] = [
    ["Metric", before["default"], after["default"], ""],
    ["Parameters", before["parameters"], after["parameters"], ""],
    ["Latency", after["latency_before_ms"], after["latency_ms"], " ms"],
  ];
  return (
    <table>
      <thead>
        <tr>
          <td />
          <th scope="col" class="number">
            Masked
          </th>
          <th scope="col" class="number">
            Smaller
          </th>
        </tr>
      </thead>
      <tbody>
        {rows.map(([name, old, now, unit]) => (
          <tr key={name}>
            <th scope="row">{name}</th>
            <td class="number">{old === undefined ? "–" : formatValue(old) + unit}</td>
            <td class="number">{now === undefined ? "–" : formatValue(now) + unit}</td>
          </tr>
        ))}
        <tr>
          <th scope="row">FLOPs</th>
          <td class="number">–</td>
          <td class="number">{formatValue(after["flops"])}</td>
        </tr>
        <tr>
          <th scope="row">Relative error</th>
          <td class="number">–</td>
          <td class="number">{after["error"] === undefined ? "–" : formatShort(after["error"])}</td>
        </tr>
      </tbody>
    </table>
  );
}

function Layers({ steps }: { steps: Step[] }) {
  const last = steps.findLast(({ trial }) => layersOf(trial).length > 0);
  if (!last) return <p class="empty">No step has ended yet.</p>;
  return (
    <table>
      <caption class="muted">Masked part after step {last.number}</caption>
      <thead>
        <tr>
          <th scope="col">Target</th>
          <th scope="col" class="number">
            Sparsity
          </th>
          <td />
        </tr>
      </thead>
      <tbody>
        {layersOf(last.trial).map(({ target, sparsity }) => (
          <tr key={target}>
            <th scope="row" class="mono">
              {target}
            </th>
            <td class="number">{percent(sparsity)}</td>
            <td class="layer-bar">
              <span style={{ width: `${sparsity * 100}%` }} />
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function percent(part: number | null): string {
  return part === null ? "–" : `${(part * 100).toFixed(1)} %`;
}

// Drawing of a model space: boxes of its modules, the data flow between them, and what one model
// chose.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";

import { boxSize, listedCandidates, nodeText } from "../charts/network_boxes";
import { offerPicture } from "../charts/chart_export";
import { columnOf, headOf, layoutOf, type NetworkLayout, pathOf } from "../charts/network_layout";
import { networkPicture } from "../charts/network_picture";
import { colourOf } from "../charts/plot";
import { SavedChart } from "../components/chart_files";
import { Icon } from "../components/icon";
import { formatValue } from "../format";
import type { Choice } from "../state/architectures";
import {
  candidateText,
  canOpen,
  choiceAt,
  chosenInputs,
  type GraphNode,
  type LayerGraph,
  type ModelGraph,
  type NodeChoice,
  type Step,
  stepsOf,
  summaryOf,
  usesEdge,
  usesSteps,
} from "../state/model_graph";
import { type Goals, ranked } from "../state/objectives";
import { usePlaceValue } from "../state/place_value";
import type { Store } from "../state/store";
import type { Trial } from "../state/trial";

/** Number of models that can be chosen. */
const BEST = 10;

interface Props {
  store: Store;
  model: ModelGraph;
  choices: Choice[];
  goals: Goals;
}

export function Network({ store, model, choices, goals }: Props) {
  const [path, open] = usePlaceValue("graph", "", "", true);
  const [chosen, choose] = usePlaceValue("model", "", "");
  const steps = useMemo(() => stepsOf(model, path), [model, path]);
  const step = steps.at(-1)!;
  const graph = model.graphs[step.graph]!;
  const trial = store.trials.get(chosen) ?? null;
  const isUsed = !trial || usesSteps(steps, choices, trial);
  return (
    <>
      <h2 id="network">Network</h2>
      <div class="tools">
        <span class="muted">{summaryOf(graph)}</span>
        <ModelSelect store={store} goals={goals} trial={trial} onChange={choose} />
      </div>
      {steps.length > 1 ? <Crumbs steps={steps} open={open} /> : null}
      {graph.traced ? null : (
        <p class="hint">The order of these modules is not known: forward could not be followed.</p>
      )}
      {model.cut ? <p class="hint">A part of the network is left out: it is too large.</p> : null}
      {isUsed ? null : <p class="hint">The chosen model does not use this part.</p>}
      <SavedChart name="network" title={`Network: ${step.name}`}>
        <Drawing
          graph={graph}
          steps={steps}
          choices={choices}
          trial={trial}
          isUsed={isUsed}
          open={open}
        />
        <Legend graph={graph} trial={trial} />
      </SavedChart>
    </>
  );
}

function ModelSelect({
  store,
  goals,
  trial,
  onChange,
}: {
  store: Store;
  goals: Goals;
  trial: Trial | null;
  onChange: (id: string) => void;
}) {
  const metric = goals.objectives[0]!.metric;
  const best = useMemo(
    () => ranked(store.trials.values(), goals, metric).slice(0, BEST),
    [store.version, goals],
  );
  const models = trial && !best.includes(trial) ? [...best, trial] : best;
  return (
    <label>
      Choices of{" "}
      <select value={trial?.id ?? ""} onChange={(event) => onChange(event.currentTarget.value)}>
        <option value="">the whole space</option>
        {models.map((one) => (
          <option key={one.id} value={one.id}>
            #{one.number} · {formatValue(one.metrics[metric])}
          </option>
        ))}
      </select>
    </label>
  );
}

function Crumbs({ steps, open }: { steps: Step[]; open: (path: string) => void }) {
  return (
    <nav aria-label="Parts of the network">
      <ol class="crumbs">
        {steps.map(({ name, path }, at) => (
          <li key={path}>
            {at === steps.length - 1 ? (
              <span aria-current="location">{name}</span>
            ) : (
              <button type="button" class="link" onClick={() => open(path)}>
                {name}
              </button>
            )}
          </li>
        ))}
      </ol>
    </nav>
  );
}

interface DrawingProps {
  graph: LayerGraph;
  steps: Step[];
  choices: Choice[];
  trial: Trial | null;
  /** Whether the chosen model uses this graph. */
  isUsed: boolean;
  open: (path: string) => void;
}

function Drawing({ graph, steps, choices, trial, isUsed, open }: DrawingProps) {
  const box = useRef<HTMLDivElement>(null);
  const [expanded, setExpanded] = useState<ReadonlySet<number>>(new Set());
  const layout = useMemo((): NetworkLayout => {
    const sizes = graph.nodes.map((node, at) => boxSize(node, expanded.has(at)));
    return graph.traced ? layoutOf(sizes, graph.edges) : columnOf(sizes);
  }, [graph, expanded]);
  const { path } = steps.at(-1)!;
  const before = useRef(path);
  useLayoutEffect(() => {
    const element = box.current!;
    const { x, width } = layout.boxes[layout.order[0]!]!;
    element.scrollTo(x + width / 2 - element.clientWidth / 2, 0);
    if (before.current === path) return;
    before.current = path;
    setExpanded(new Set());
    element.focus({ preventScroll: true }); // the pressed button is gone
  }, [path]);
  const targets = useMemo(() => targetsOf(graph), [graph]);
  const made = useMemo(() => {
    const read = trial && chosenInputs(graph, trial);
    return graph.nodes.map((node, at) => trial && choiceAt(node, choices, trial, read![at]));
  }, [graph, choices, trial]);
  const usedEdges = graph.edges.map((edge) => isUsed && (!trial || usesEdge(edge, trial)));
  const drawing = useRef<HTMLDivElement>(null);
  useEffect(() => {
    const element = drawing.current!;
    const shown = { choices: made, edges: usedEdges, isUsed };
    return offerPicture(element, () =>
      networkPicture(graph, layout, shown, {
        ink: colourOf(element, "--ink"),
        muted: colourOf(element, "--muted"),
        card: colourOf(element, "--card"),
        shade: colourOf(element, "--shade"),
        line: colourOf(element, "--strong-line"),
        accent: colourOf(element, "--accent"),
        accentShade: colourOf(element, "--accent-shade"),
      }),
    );
  }, [graph, layout, made, isUsed]);
  return (
    <div
      class="scroll network"
      role="group"
      aria-label={`Drawing of ${steps.at(-1)!.name}`}
      tabIndex={0}
      ref={box}
    >
      <div
        class="network-drawing"
        ref={drawing}
        style={{ width: `${layout.width}px`, height: `${layout.height}px` }}
      >
        <svg width={layout.width} height={layout.height} aria-hidden="true">
          {layout.lines.map((line, at) => {
            const edge = graph.edges[at]!;
            return (
              <g
                key={at}
                class="edge"
                data-conditional={edge.condition ? "" : undefined}
                data-unused={usedEdges[at] ? undefined : ""}
              >
                <path d={pathOf(line)} />
                <polygon points={headOf(line).join(" ")} />
              </g>
            );
          })}
        </svg>
        <ol>
          {layout.order.map((at) => {
            const node = graph.nodes[at]!;
            const { x, y, width, height } = layout.boxes[at]!;
            const place = { left: x, top: y, width, height };
            return (
              <li
                key={at}
                class="node"
                data-kind={node.kind}
                data-choice={node.labels.length ? "" : undefined}
                data-unused={isUsed ? undefined : ""}
                style={Object.fromEntries(Object.entries(place).map(([k, v]) => [k, `${v}px`]))}
              >
                <NodeBox
                  node={node}
                  choice={made[at]!}
                  isUsed={isUsed}
                  isExpanded={expanded.has(at)}
                  expand={() => setExpanded(new Set([...expanded, at]))}
                  canOpen={(graph) => canOpen(steps, graph)}
                  open={(candidate) =>
                    open(
                      (path ? `${path},` : "") + at + (candidate === null ? "" : `:${candidate}`),
                    )
                  }
                />
                {targets[at] ? <span class="visually-hidden">Leads to {targets[at]}.</span> : null}
              </li>
            );
          })}
        </ol>
      </div>
    </div>
  );
}

/** Number of targets of a node that its hidden text lists. */
const MOST_TARGETS = 20;

/** Return the names of the nodes that each node leads to, for people who cannot see the edges. */
function targetsOf({ nodes, edges }: LayerGraph): string[] {
  const targets: string[][] = nodes.map(() => []);
  for (const { from, to, condition } of edges) {
    const name = nodes[to]!.name;
    const text = condition ? `${name} (choice ${condition.label})` : name;
    if (targets[from]!.length < MOST_TARGETS && !targets[from]!.includes(text))
      targets[from]!.push(text);
  }
  return targets.map((names) => names.join(", "));
}

interface NodeBoxProps {
  node: GraphNode;
  choice: NodeChoice | null;
  isUsed: boolean;
  isExpanded: boolean;
  expand: () => void;
  canOpen: (graph: number | null) => boolean;
  /** Open the graph of a candidate, or with null that of the node. */
  open: (candidate: number | null) => void;
}

function NodeBox({ node, choice, isUsed, isExpanded, expand, canOpen, open }: NodeBoxProps) {
  const listed = listedCandidates(node, isExpanded);
  const text = nodeText(node);
  const hidden = node.candidates.length - listed;
  return (
    <>
      <NodeName name={node.name} onOpen={canOpen(node.graph) ? () => open(null) : null} />
      {text ? (
        <span class="node-text mono" title={text}>
          {text}
        </span>
      ) : null}
      {node.labels.length ? (
        <ChoiceText labels={node.labels} choice={isUsed ? choice : null} />
      ) : null}
      {node.candidates.slice(0, listed).map((candidate, at) => {
        const used = isUsed && (choice?.used[at] ?? true);
        const isChosen = isUsed && choice !== null && used;
        const content = candidateText(candidate);
        return (
          <span
            key={at}
            class="candidate mono"
            data-chosen={isChosen ? "" : undefined}
            data-unused={used ? undefined : ""}
          >
            <span class="candidate-mark">{isChosen ? <Icon name="check" size={12} /> : "·"}</span>
            {canOpen(candidate.graph) ? (
              <OpenButton name={content} onOpen={() => open(at)} />
            ) : (
              <span class="cut-off" title={content}>
                {content}
              </span>
            )}
            {choice && isUsed ? (
              <span class="visually-hidden">{used ? " (chosen)" : " (not chosen)"}</span>
            ) : null}
          </span>
        );
      })}
      {hidden > 0 ? (
        <button type="button" class="link node-more" onClick={expand}>
          {hidden} more
        </button>
      ) : null}
    </>
  );
}

function NodeName({ name, onOpen }: { name: string; onOpen: (() => void) | null }) {
  return (
    <span class="node-name">
      {onOpen ? (
        <OpenButton name={name} onOpen={onOpen} />
      ) : (
        <span class="cut-off" title={name}>
          {name}
        </span>
      )}
    </span>
  );
}

function OpenButton({ name, onOpen }: { name: string; onOpen: () => void }) {
  return (
    <button type="button" class="node-open" title={`${name}: open`} onClick={onOpen}>
      <span class="cut-off">{name}</span>
      <Icon name="right" size={14} />
    </button>
  );
}

/** The choices that a node depends on, or what the model chose. */
function ChoiceText({ labels, choice }: { labels: string[]; choice: NodeChoice | null }) {
  const names = labels.join(", ");
  const all = labels.length === 1 ? `choice: ${names}` : `${labels.length} choices: ${names}`;
  return (
    <span class="node-choice" title={choice ? `${choice.text} (${all})` : all}>
      {choice?.text ?? all}
    </span>
  );
}

function Legend({ graph, trial }: { graph: LayerGraph; trial: Trial | null }) {
  const isConditional = graph.edges.some(({ condition }) => condition);
  if (!isConditional && !graph.nodes.some(({ labels }) => labels.length)) return null;
  return (
    <p class="legend">
      <span>
        <span class="node-key" /> depends on a choice
      </span>
      {isConditional ? (
        <span>
          <EdgeKey /> input that a choice may read
        </span>
      ) : null}
      {isConditional && trial ? (
        <span>
          <EdgeKey isUnused /> not read by this model
        </span>
      ) : null}
    </p>
  );
}

function EdgeKey({ isUnused = false }: { isUnused?: boolean }) {
  return (
    <svg width="24" height="8" aria-hidden="true">
      <g class="edge" data-conditional="" data-unused={isUnused ? "" : undefined}>
        <path d="M0 4H24" />
      </g>
    </svg>
  );
}

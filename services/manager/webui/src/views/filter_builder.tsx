// Menu that builds parts of the search text.

import { useState } from "preact/hooks";

import { Menu } from "../components/menu";
import type { Column } from "../state/columns";
import { searchText } from "../state/filter";
import { type Dimension, dimensionsOf } from "../state/space";
import type { Store } from "../state/store";

interface Props {
  store: Store;
  columns: Column[];
  onAdd: (part: string) => void;
}

export function FilterBuilder(props: Props) {
  return (
    <Menu label="Filter" icon="filter" align="right">
      {(close) => <Form {...props} close={close} />}
    </Menu>
  );
}

function Form({ store, columns, onAdd, close }: Props & { close: () => void }) {
  const offered = columns.filter((one) => one.number || one.key.startsWith("p:"));
  const [key, setKey] = useState(offered.find((one) => one.key === "result")?.key ?? "");
  const [low, setLow] = useState("");
  const [high, setHigh] = useState("");
  const [values, setValues] = useState<string[]>([]);
  const column = offered.find((one) => one.key === key);
  const dimension = dimensionsOf(store.profile?.params["searchSpace"]).find(
    (one) => `p:${one.name}` === key,
  );
  const options = optionsOf(dimension);
  const add = (event: Event) => {
    event.preventDefault();
    const name = column?.title.includes(" ") ? `"${column.title}"` : column?.title;
    const part = options.length ? `${name}=${values.join(",")}` : `${name}:${low}..${high}`;
    if (options.length ? values.length : low || high) onAdd(part);
    close();
  };
  return (
    <form class="filter-form" onSubmit={add}>
      <label class="field">
        <span>Column</span>
        <select
          value={key}
          onChange={(event) => {
            setKey(event.currentTarget.value);
            setValues([]);
          }}
        >
          {offered.map((one) => (
            <option key={one.key} value={one.key}>
              {one.title}
            </option>
          ))}
        </select>
      </label>
      {options.length ? (
        <fieldset class="choices">
          <legend>is one of</legend>
          {options.map(({ text, label }) => (
            <label key={text} class="check">
              <input
                type="checkbox"
                checked={values.includes(text)}
                onChange={() =>
                  setValues(
                    values.includes(text)
                      ? values.filter((other) => other !== text)
                      : [...values, text],
                  )
                }
              />{" "}
              {label}
            </label>
          ))}
        </fieldset>
      ) : (
        <div class="row">
          <label class="field">
            <span>from</span>
            <input
              class="narrow"
              inputMode="decimal"
              value={low}
              onInput={(event) => setLow(event.currentTarget.value)}
            />
          </label>
          <label class="field">
            <span>to</span>
            <input
              class="narrow"
              inputMode="decimal"
              value={high}
              onInput={(event) => setHigh(event.currentTarget.value)}
            />
          </label>
        </div>
      )}
      <button class="primary">Add</button>
      <p class="muted small">
        The search also accepts <code>failed</code>, <code>#12</code>, <code>#10..20</code>,{" "}
        <code>optimizer=adam,sgd</code>, <code>result&gt;0.9</code>, <code>units=null</code>,{" "}
        <code>units=</code> for trials without it. A trial must match all parts.
      </p>
    </form>
  );
}

/** Return the values of a choice; one of a branch may also have no value. */
function optionsOf(dimension: Dimension | undefined): { text: string; label: string }[] {
  if (!dimension?.options.length) return [];
  const found = dimension.options.map((label) => ({ text: searchText(label), label }));
  return dimension.depth > 0 ? [...found, { text: "", label: "no value" }] : found;
}

// Menu in which things are chosen by name: search, order, reset.

import { useState } from "preact/hooks";

import { foundIn, inOrder, shifted, toggled } from "../state/choices";
import { Icon, type IconName } from "./icon";
import { Menu } from "./menu";

interface Props {
  /** Of the button and the list: `Columns`. */
  label: string;
  icon: IconName;
  align?: "left" | "right";
  all: readonly { key: string; title: string }[];
  /** Keys of the chosen ones, in their order. */
  chosen: readonly string[];
  /** Called with null to choose the usual ones. */
  onChange: (keys: string[] | null) => void;
  /** Whether the order can be changed. */
  ordered?: boolean;
  /** More fields, above the list. */
  children?: preact.ComponentChildren;
}

/** Number of choices from which on the menu has a search. */
const SEARCH_FROM = 8;

export function ChoiceMenu(props: Props) {
  return (
    <Menu label={props.label} icon={props.icon} align={props.align ?? "left"}>
      {() => <Choices {...props} />}
    </Menu>
  );
}

function Choices({ label, all, chosen, onChange, ordered = false, children }: Props) {
  const [search, setSearch] = useState("");
  const rows = foundIn(ordered ? inOrder(all, chosen) : all, search);
  const move = (key: string, by: number) => onChange(shifted(chosen, key, by));
  return (
    <fieldset class="choices">
      <legend class="visually-hidden">{label}</legend>
      {all.length >= SEARCH_FROM ? (
        <input
          type="search"
          placeholder="Search…"
          aria-label={`Search ${label.toLowerCase()}`}
          value={search}
          onInput={(event) => setSearch(event.currentTarget.value)}
        />
      ) : null}
      <div class="row choice-extras">
        {children}
        <span class="grow" />
        <button type="button" class="quiet" onClick={() => onChange(null)}>
          Reset
        </button>
      </div>
      <div class="choice-list">
        {rows.map(({ key, title }) => {
          const at = chosen.indexOf(key);
          return (
            <div key={key} class="choice">
              <label class="check">
                <input
                  type="checkbox"
                  checked={at >= 0}
                  onChange={() => onChange(toggled(chosen, key))}
                />
                {title}
              </label>
              {ordered && at >= 0 ? (
                <>
                  <button
                    type="button"
                    class="quiet small"
                    aria-label={`Move ${title} forward`}
                    disabled={at === 0}
                    onClick={() => move(key, -1)}
                  >
                    <Icon name="up" size={12} />
                  </button>
                  <button
                    type="button"
                    class="quiet small"
                    aria-label={`Move ${title} back`}
                    disabled={at === chosen.length - 1}
                    onClick={() => move(key, 1)}
                  >
                    <Icon name="down" size={12} />
                  </button>
                </>
              ) : null}
            </div>
          );
        })}
        {rows.length ? null : <p class="muted">Nothing matches.</p>}
      </div>
    </fieldset>
  );
}

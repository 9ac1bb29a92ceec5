// Accessible tabs: arrow keys move between them.

import type { ComponentChildren } from "preact";
import { useId, useRef } from "preact/hooks";

interface Props<K extends string> {
  label: string;
  tabs: readonly (readonly [K, string])[];
  current: K;
  onChange: (key: K) => void;
  children: ComponentChildren;
}

export function Tabs<K extends string>({ label, tabs, current, onChange, children }: Props<K>) {
  const id = useId();
  const list = useRef<HTMLDivElement>(null);
  const move = (event: KeyboardEvent) => {
    const at = tabs.findIndex(([key]) => key === current);
    const step = { ArrowRight: 1, ArrowLeft: -1, Home: -at, End: tabs.length - 1 - at }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    const next = (at + step + tabs.length) % tabs.length;
    onChange(tabs[next]![0]);
    list.current?.querySelectorAll<HTMLElement>("[role=tab]")[next]?.focus();
  };
  return (
    <>
      <div class="tabs" role="tablist" aria-label={label} ref={list} onKeyDown={move}>
        {tabs.map(([key, title]) => (
          <button
            key={key}
            type="button"
            role="tab"
            id={`${id}-${key}`}
            aria-selected={key === current}
            aria-controls={`${id}-panel`}
            tabIndex={key === current ? 0 : -1}
            onClick={() => onChange(key)}
          >
            {title}
          </button>
        ))}
      </div>
      <div
        role="tabpanel"
        id={`${id}-panel`}
        aria-labelledby={`${id}-${current}`}
        class="tab-panel"
      >
        {children}
      </div>
    </>
  );
}

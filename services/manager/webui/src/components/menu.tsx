// Drop-down menu: closes on Escape and on a click outside.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { Icon, type IconName } from "./icon";

interface Props {
  label: string;
  icon?: IconName;
  align?: "left" | "right";
  /** Content of the panel; gets a function that closes it. */
  children: (close: () => void) => ComponentChildren;
}

export function Menu({ label, icon, align = "left", children }: Props) {
  const [open, setOpen] = useState(false);
  const box = useRef<HTMLDivElement>(null);
  const button = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (!open) return undefined;
    const closeOutside = (event: PointerEvent) => {
      if (!box.current?.contains(event.target as Node)) setOpen(false);
    };
    document.addEventListener("pointerdown", closeOutside);
    return () => document.removeEventListener("pointerdown", closeOutside);
  }, [open]);
  const close = () => {
    setOpen(false);
    button.current?.focus();
  };
  return (
    <div
      class="menu"
      ref={box}
      onKeyDown={(event) => {
        if (event.key === "Escape" && open) {
          event.stopPropagation();
          close();
        }
      }}
    >
      <button
        ref={button}
        type="button"
        class="plain"
        aria-expanded={open}
        onClick={() => setOpen(!open)}
      >
        {icon ? <Icon name={icon} /> : null}
        {label}
        <Icon name="down" size={12} />
      </button>
      {open ? <div class={`menu-panel ${align}`}>{children(close)}</div> : null}
    </div>
  );
}

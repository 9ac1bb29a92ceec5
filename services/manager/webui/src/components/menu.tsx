// Drop-down menu: closes on Escape and on a click outside, and stays on the screen.

import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

import { type MenuPlace, menuPlace } from "../state/menu_place";
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
      {open ? (
        <Panel button={button.current!} align={align}>
          {children(close)}
        </Panel>
      ) : null}
    </div>
  );
}

function Panel({
  button,
  align,
  children,
}: {
  button: HTMLElement;
  align: "left" | "right";
  children: ComponentChildren;
}) {
  const panel = useRef<HTMLDivElement>(null);
  const [place, setPlace] = useState<MenuPlace | null>(null);
  useLayoutEffect(() => {
    const measure = () => {
      const element = panel.current!;
      const size = { width: element.offsetWidth, height: element.scrollHeight };
      // Without a scroll bar, which the window may have.
      const screen = { width: document.documentElement.clientWidth, height: innerHeight };
      setPlace(menuPlace(button.getBoundingClientRect(), size, screen, align));
    };
    measure();
    addEventListener("resize", measure);
    return () => removeEventListener("resize", measure);
  }, [button, align]);
  return (
    <div
      ref={panel}
      class={place?.above ? "menu-panel above" : "menu-panel"}
      style={place ? { left: `${place.shift}px`, maxHeight: `${place.maxHeight}px` } : undefined}
    >
      {children}
    </div>
  );
}

// Drawer or modal over the page. The browser's `<dialog>` traps the focus and closes on Escape.

import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";

import { Icon } from "./icon";

interface Props {
  title: ComponentChildren;
  /** `drawer` stands at the right edge, `modal` in the middle. */
  kind?: "drawer" | "modal";
  wide?: boolean;
  /** Buttons beside the title. */
  actions?: ComponentChildren;
  onClose: () => void;
  children: ComponentChildren;
}

export function Dialog({
  title,
  kind = "drawer",
  wide = false,
  actions,
  onClose,
  children,
}: Props) {
  const box = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = box.current!;
    const before = document.activeElement;
    dialog.showModal();
    return () => {
      dialog.close();
      if (before instanceof HTMLElement && before.isConnected) before.focus();
    };
  }, []);
  return (
    <dialog
      ref={box}
      class={`dialog ${kind}${wide ? " wide" : ""}`}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
      // The content covers the dialog: a click on the dialog itself is on its backdrop.
      onPointerDown={(event) => {
        if (event.target === box.current) onClose();
      }}
    >
      <div class="dialog-content">
        <div class="dialog-head">
          <h2 id={heading}>{title}</h2>
          <div class="row">{actions}</div>
          <button type="button" class="quiet" aria-label="Close" onClick={onClose}>
            <Icon name="close" />
          </button>
        </div>
        <div class="dialog-body">{children}</div>
      </div>
    </dialog>
  );
}

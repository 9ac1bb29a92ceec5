// Button that copies text to the clipboard.

import { useState } from "preact/hooks";

import { Icon } from "./icon";

export function CopyButton({
  text,
  label,
  small = false,
}: {
  text: string | (() => string);
  label: string;
  small?: boolean;
}) {
  const [done, setDone] = useState(false);
  const copy = async () => {
    await toClipboard(typeof text === "string" ? text : text());
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return (
    <button
      type="button"
      class={small ? "quiet small" : "plain"}
      onClick={() => void copy()}
      title={small ? label : undefined}
      aria-label={small ? label : undefined}
    >
      <Icon name={done ? "check" : "copy"} />
      {small ? null : done ? "Copied" : label}
      <span class="visually-hidden" role="status">
        {done ? "Copied" : ""}
      </span>
    </button>
  );
}

/** Copy text. Off loopback, plain HTTP has no clipboard API, but copying a selection works. */
async function toClipboard(text: string): Promise<void> {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  (document.querySelector("dialog[open]") ?? document.body).append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// Form of a dialog: sends once, shows why it was refused, and can be left without sending.

import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";

import { errorMessage } from "../api/client";

interface Props {
  /** Of the button that sends. */
  label: string;
  /** Of that button while the request runs. */
  busyLabel?: string;
  /** Whether it ends or deletes something. */
  danger?: boolean;
  /** Whether the button that sends gets the focus. */
  focused?: boolean;
  onCancel: () => void;
  /** Send the form; returns what is wrong with the fields, nothing once it is sent. */
  submit: () => Promise<string[]>;
  children: ComponentChildren;
}

export function SubmitForm(props: Props) {
  const { label, busyLabel = label, danger = false, focused = false, onCancel, children } = props;
  const [problems, setProblems] = useState<string[]>([]);
  const [busy, setBusy] = useState(false);
  const sender = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (focused) sender.current?.focus();
  }, [focused]);
  const submit = async (event: Event) => {
    event.preventDefault();
    setBusy(true);
    setProblems([]);
    try {
      setProblems(await props.submit());
    } catch (error) {
      setProblems([errorMessage(error)]);
    }
    setBusy(false);
  };
  return (
    <form onSubmit={(event) => void submit(event)}>
      {children}
      {problems.length === 1 ? (
        <p class="wrong" role="alert">
          {problems[0]}
        </p>
      ) : null}
      {problems.length > 1 ? (
        <ul class="wrong" role="alert">
          {problems.map((text) => (
            <li key={text}>{text}</li>
          ))}
        </ul>
      ) : null}
      <div class="row end">
        <button type="button" class="plain" disabled={busy} onClick={onCancel}>
          Cancel
        </button>
        <button class={danger ? "plain danger" : "primary"} disabled={busy} ref={sender}>
          {busy ? busyLabel : label}
        </button>
      </div>
    </form>
  );
}

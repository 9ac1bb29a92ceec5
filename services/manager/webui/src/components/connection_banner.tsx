// Banner about a lost connection, after a few seconds.

import { useEffect, useState } from "preact/hooks";

import { LOST_AFTER_MS, lostMessage } from "../state/connection";
import { useStore } from "../state/context";

/** `own` is the experiment of the listener; empty on the base address, which stays open. */
export function ConnectionBanner({ own }: { own: string }) {
  const store = useStore();
  const lost = store.connection === "lost";
  const [shown, setShown] = useState(false);
  useEffect(() => {
    if (!lost) {
      setShown(false);
      return undefined;
    }
    const timer = setTimeout(() => setShown(true), LOST_AFTER_MS);
    return () => clearTimeout(timer);
  }, [lost]);
  if (!shown || !store.profile) return null;
  const { title, text, commands } = lostMessage(
    store.status?.status ?? "",
    store.profile.id,
    own !== "",
  );
  return (
    <div class="notice warning" role="alert">
      <span>
        <b>{title}.</b> {text}{" "}
        {commands.map(([command, effect], i) => (
          <span key={command}>
            {i ? "; " : ""}
            <code>{command}</code> {effect}
          </span>
        ))}
        .
      </span>
    </div>
  );
}

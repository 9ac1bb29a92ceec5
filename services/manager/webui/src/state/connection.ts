// Message about a lost connection, with the remedy.

/** Time without a connection before the message, in ms: a restart of the manager takes less. */
export const LOST_AFTER_MS = 3_000;

const CLOSING = new Set(["STOPPING", "STOPPED"]);

export interface LostMessage {
  title: string;
  text: string;
  /** Commands that help, each with its effect. */
  commands: [string, string][];
}

/** Return the message for an experiment whose last known status is `status`. */
export function lostMessage(status: string, id: string, bound: boolean): LostMessage {
  if (CLOSING.has(status) && bound)
    return {
      title: "The experiment was stopped",
      text: "Its address is closed. The page shows what it had last; all data are kept.",
      commands: [
        [`nnictl view ${id}`, "opens it for reading"],
        [`nnictl resume ${id}`, "continues it"],
      ],
    };
  return {
    title: "The connection to the manager is lost",
    text: "The page shows what it had last and connects again by itself.",
    commands: [
      ["nnictl up", "starts the services if they have ended"],
      ["nnictl webui url", "prints the address if it has changed"],
    ],
  };
}

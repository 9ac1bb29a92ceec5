import { expect, test } from "vitest";

import { lostMessage } from "../src/state/connection";

test.each([
  ["RUNNING", true, "The connection to the manager is lost", "nnictl up"],
  ["STOPPING", true, "The experiment was stopped", "nnictl view exp00001"],
  ["STOPPED", false, "The connection to the manager is lost", "nnictl up"],
])("after %s, own address %s: %s", (status, bound, title, command) => {
  const message = lostMessage(status, "exp00001", bound);

  expect([message.title, message.commands[0]![0]]).toEqual([title, command]);
});

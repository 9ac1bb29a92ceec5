import { describe, expect, it } from "vitest";

import { type ActionName, actionsOf, readSpace } from "../src/state/actions";

const possible = (status: string): ActionName[] =>
  actionsOf(status, 0, false)
    .filter(({ reason }) => !reason)
    .map(({ name }) => name);

describe("actions", () => {
  it.each([
    ["RUNNING", ["stop", "again"]],
    ["DONE", ["stop", "again"]],
    ["ERROR", ["stop", "again"]],
    ["VIEWED", ["stop", "again"]],
    ["STOPPING", ["again"]],
    ["STOPPED", ["resume", "again", "delete"]],
  ])("of an experiment in the state %s are %j", (status, names) => {
    expect(possible(status)).toEqual(names);
  });

  it("say what a stop ends", () => {
    const [stop] = actionsOf("RUNNING", 1, true);

    expect(stop!.effect).toContain("1 live trial is cancelled");
    expect(stop!.effect).toContain("This address is closed");
    expect(actionsOf("RUNNING", 2, false)[0]!.effect).toContain("2 live trials are cancelled");
    expect(actionsOf("VIEWED", 0, false)[0]!.label).toBe("Close");
  });
});

describe("text of a search space", () => {
  it("is a JSON object", () => {
    expect(readSpace('{"x": {"_type": "choice", "_value": [1]}}')).toEqual({
      value: { x: { _type: "choice", _value: [1] } },
    });
  });

  it.each(["", "[1]", "null", "3", "{x: 1}"])("is refused: %j", (text) => {
    expect(readSpace(text)).toHaveProperty("problem");
  });
});

import { expect, test } from "vitest";

import { limitChange, limitTexts } from "../src/state/agent_limits";

const LIMITS = { maxAgents: 4, maxAgentTime: "7200s", maxCost: 9.5 };

test("limits are texts, durations in their largest unit", () => {
  expect(limitTexts(LIMITS)).toEqual({
    minAgents: "",
    maxAgents: "4",
    idleTime: "",
    maxAgentTime: "2h",
    maxCost: "9.5",
    costPerAgentHour: "",
  });
});

test("the same texts change nothing", () => {
  expect(limitChange(LIMITS, limitTexts(LIMITS))).toEqual({ params: {}, problems: {} });
});

test("a new text sets its limit, and an empty one removes it", () => {
  const texts = { ...limitTexts(LIMITS), maxAgents: " 8 ", idleTime: "10m", maxCost: "" };
  expect(limitChange(LIMITS, texts)).toEqual({
    params: { maxAgents: 8, idleTime: "10m", remove: ["maxCost"] },
    problems: {},
  });
});

test.each([
  ["minAgents", "-1", "an integer >= 0"],
  ["maxAgents", "0", "an integer >= 1"],
  ["maxAgents", "1.5", "an integer >= 1"],
  ["idleTime", "soon", "a duration"],
  ["maxAgentTime", "0s", "a duration"],
  ["maxCost", "0", "a number > 0"],
  ["costPerAgentHour", "1e999", "a number > 0"],
])("%s refuses %s", (name, text, rule) => {
  const { params, problems } = limitChange(LIMITS, { ...limitTexts(LIMITS), [name]: text });
  expect(params).toEqual({});
  expect(problems[name]).toContain(rule);
});

import { expect, test } from "vitest";

import {
  type Line,
  joined,
  limited,
  styleAfter,
  terminalLines,
  terminalText,
} from "../src/state/terminal";

const ESC = "\u001b";

test.each([
  ["plain\ntext", "plain\ntext"],
  [`${ESC}[1;31mred${ESC}[0m`, "red"],
  [`${ESC}]8;;https://x.org${ESC}\\link${ESC}]8;;${ESC}\\`, "link"],
  [`${ESC}]0;title\u0007text`, "text"],
  ["10 %\r20 %\r100 %\ndone", "100 %\ndone"],
  ["windows\r\nline\r\n", "windows\nline\n"],
  ["long text\rshort", "shorttext"],
  ["abcdef\r12\r3", "32cdef"],
  [`abcdef\r12${ESC}[K\r3`, "32"],
  [`long text\r${ESC}[Kshort`, "short"],
  [`\r${ESC}[32m 50%${ESC}[0m|##\r${ESC}[32m100%${ESC}[0m|##`, "100%|##"],
])("%j is shown as %j", (text, shown) => expect(terminalText(text)).toBe(shown));

/** Return lines as text with the styles in braces. */
function shown(text: string): string {
  return terminalLines(text)
    .map((line) =>
      line
        .map((span) => {
          if (!span.style) return span.text;
          const { colour, background, ...others } = span.style;
          const names = Object.entries(others).flatMap(([name, on]) => (on ? [name] : []));
          return `{${[colour ?? "-", background ?? "-", ...names].join(" ")}|${span.text}}`;
        })
        .join(""),
    )
    .join("\n");
}

test.each([
  ["a colour and its end", `${ESC}[31mred${ESC}[0m plain`, "{1 -|red} plain"],
  ["a bright colour", `${ESC}[1;92mok${ESC}[m!`, "{2 - bold|ok}!"],
  ["a background", `${ESC}[44mx${ESC}[49my`, "{- 4|x}y"],
  ["a style over the ends of lines", `${ESC}[33mone\ntwo${ESC}[39m\nthree`, "{3 -|one}\n{3 -|two}\nthree"],
  ["bold, dim, italic, underline", `${ESC}[1;2;3;4mx${ESC}[22;23;24my`, "{- - bold dim italic underline|x}y"],
  ["a colour of the palette", `${ESC}[38;5;196mx`, "{1 -|x}"],
  ["a grey of the palette", `${ESC}[38;5;240mx`, "x"],
  ["an RGB colour", `${ESC}[38;2;10;200;30mx${ESC}[48;2;0;0;255my`, "{2 -|x}{2 4|y}"],
  ["unknown codes", `${ESC}[73;5mx`, "x"],
  ["a progress bar that changes its colour", `${ESC}[31m 50%${ESC}[0m|##\r${ESC}[32m100%`, "{2 -|100%}|##"],
  ["a longer text below a short one", `${ESC}[31mabcdef\r${ESC}[32mxy`, "{2 -|xy}{1 -|cdef}"],
  ["an erased line", `${ESC}[31mabcdef\r${ESC}[K${ESC}[0mxy`, "xy"],
])("%s", (_name, text, expected) => expect(shown(text)).toBe(expected)); // prettier-ignore

test("of many styled spans the newest keep their style", () => {
  const style = styleAfter(null, "31");
  const line: Line = [{ text: "a", style }];

  expect(limited([line, line, line], 2)).toEqual([[{ text: "a", style: null }], line, line]);
});

test("a sequence of many codes is read at once", () => {
  // The time that a copy of the remaining codes for each colour takes would end the test.
  expect(styleAfter(null, "38;5;1;".repeat(100_000) + "1")).toMatchObject({
    colour: 1,
    bold: true,
  });
});

test("lines become few spans", () =>
  expect(joined(terminalLines(`a\nb\n${ESC}[31mc${ESC}[0m\nd`)).map((span) => span.text)).toEqual([
    "a\nb\n",
    "c",
    "\nd",
  ]));

test("a long line that is overwritten many times is read in time", () => {
  const bar = Array.from({ length: 20_000 }, (_, i) => `${ESC}[32m${i}${ESC}[0m`).join("\r");

  expect(terminalText(bar)).toBe("19999");
});

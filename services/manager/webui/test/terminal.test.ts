import { expect, test } from "vitest";

import { terminalText } from "../src/state/terminal";

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

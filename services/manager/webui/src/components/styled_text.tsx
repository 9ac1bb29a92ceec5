// Text of a terminal with its colours, which the style sheet has in a light and a dark variant.

import type { Span, TextStyle } from "../state/terminal";

export function StyledText({ spans }: { spans: readonly Span[] }) {
  return (
    <>
      {spans.map(({ text, style }) =>
        style === null ? (
          text
        ) : (
          <span
            class={classOf(style)}
            data-ink={style.colour ?? undefined}
            data-back={style.background ?? undefined}
          >
            {text}
          </span>
        ),
      )}
    </>
  );
}

function classOf(style: TextStyle): string {
  const names = (["bold", "dim", "italic", "underline"] as const).filter((name) => style[name]);
  return ["styled", ...names].join(" ");
}

// Progress bar of a budget.

interface Part {
  /** State that selects the colour. */
  state: string;
  /** Share of the budget, 0 to 1. */
  part: number;
}

export function Progress({ label, parts, text }: { label: string; parts: Part[]; text: string }) {
  const used = parts.reduce((sum, one) => sum + one.part, 0);
  return (
    <div
      class="progress"
      role="progressbar"
      aria-label={label}
      aria-valuemin={0}
      aria-valuemax={100}
      aria-valuenow={Math.round(Math.min(1, used) * 100)}
      aria-valuetext={text}
    >
      {parts.map(({ state, part }) => (
        <span key={state} data-state={state} style={{ width: `${Math.min(1, part) * 100}%` }} />
      ))}
    </div>
  );
}

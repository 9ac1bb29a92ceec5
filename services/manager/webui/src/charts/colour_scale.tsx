// Legend of the colour scale of lines.

export function ColourScale() {
  return (
    <span>
      worst <i class="scale" /> best trial
    </span>
  );
}

// What the colours of lines mean.

export function Scale() {
  return (
    <span>
      worst <i class="scale" /> best trial
    </span>
  );
}

// Throttle of renderings: at most one per interval, and no more than a share of the time.

/** Part of the time that renderings may take. */
const SHARE = 0.08;

/** Return the wait before the next rendering after one that took `costMs`. */
export function waitAfter(costMs: number, leastMs: number): number {
  return Math.max(leastMs, Math.round(costMs / SHARE));
}

export class Throttle {
  private timer: ReturnType<typeof setTimeout> | null = null;
  private wait: number;

  /** Calls `run`, which renders, at most once in `leastMs`. */
  constructor(
    private readonly run: () => void,
    private readonly leastMs: number,
  ) {
    this.wait = leastMs;
  }

  /** Ask for a call of `run`. */
  request(): void {
    this.timer ??= setTimeout(() => {
      this.timer = null;
      this.measured();
    }, this.wait);
  }

  cancel(): void {
    if (this.timer) clearTimeout(this.timer);
    this.timer = null;
  }

  /** Call `run` and measure its rendering, and the effects after the next frame. */
  private measured(): void {
    const begun = performance.now();
    this.run();
    setTimeout(() => {
      const rendered = performance.now() - begun;
      requestAnimationFrame(() => {
        const frame = performance.now();
        setTimeout(() => {
          this.wait = waitAfter(rendered + performance.now() - frame, this.leastMs);
        });
      });
    });
  }
}

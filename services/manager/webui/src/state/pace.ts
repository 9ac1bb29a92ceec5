// Pace of requests: the first ones at once, later ones at a steady rate.

export class Pace {
  private tokens: number;
  private at = 0;

  /** Up to `capacity` requests at once; one more each `refillMs`. */
  constructor(
    private readonly capacity: number,
    private readonly refillMs: number,
  ) {
    this.tokens = capacity;
  }

  /** Take the place of one request at time `now` (ms); return how long it has to wait, in ms. */
  take(now: number): number {
    this.tokens = Math.min(this.capacity, this.tokens + (now - this.at) / this.refillMs);
    this.at = now;
    this.tokens -= 1;
    return this.tokens >= 0 ? 0 : Math.ceil(-this.tokens * this.refillMs);
  }
}

// A tuner that knows nothing of gRPC: it climbs from the best parameters seen so far.

const FIRST_DRAWS = 5;
const RESTART_CHANCE = 0.2;
const STEP = 0.15;

/** A small generator of random numbers in [0, 1) that repeats itself for the same seed. */
function randomNumbers(seed) {
  let state = Number(BigInt.asUintN(32, BigInt(seed))) ^ 0x9e3779b9;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}

const clamp = (value, low, high) => Math.min(Math.max(value, low), high);

/** Each kind of range maps a position in [0, 1] to a value, and a value back to its position. */
const RANGES = {
  uniform: ([low, high]) => ({
    value: (at) => clamp(low + at * (high - low), low, high),
    position: (value) => (high > low ? (value - low) / (high - low) : 0),
  }),
  loguniform: ([low, high]) => ({
    value: (at) => clamp(Math.exp(Math.log(low) + at * Math.log(high / low)), low, high),
    position: (value) => (high > low ? Math.log(value / low) / Math.log(high / low) : 0),
  }),
  quniform: ([low, high, step]) => ({
    value: (at) => clamp(Math.round((low + at * (high - low)) / step) * step, low, high),
    position: (value) => (high > low ? (value - low) / (high - low) : 0),
  }),
  randint: ([low, high]) => ({
    value: (at) => Math.min(low + Math.floor(at * (high - low)), high - 1),
    position: (value) => (value - low + 0.5) / (high - low),
  }),
  choice: (options) => ({
    value: (at) => options[Math.min(Math.floor(at * options.length), options.length - 1)],
    position: (value) => (options.indexOf(value) + 0.5) / options.length,
    jumps: true,
  }),
};

/** Reads a search space; throws an Error that says what is wrong with it. */
export function readSpace(space) {
  if (space === null || typeof space !== 'object' || Array.isArray(space)) {
    throw new Error('the search space must be a map of parameters');
  }
  return Object.entries(space).map(([name, entry]) => {
    const kind = entry?._type;
    const values = entry?._value;
    if (!Object.hasOwn(RANGES, kind)) {
      throw new Error(`${name}._type must be one of ${Object.keys(RANGES).join(', ')}, got ${kind}`);
    }
    if (!Array.isArray(values) || values.length === 0) {
      throw new Error(`${name}._value must be a list that is not empty`);
    }
    if (kind === 'choice') {
      if (values.some((value) => value !== null && typeof value === 'object')) {
        throw new Error(`${name}._value must hold plain values: this tuner knows no nested spaces`);
      }
    } else if (!values.every(Number.isFinite) || values.length < 2 || values[0] > values[1]) {
      throw new Error(`${name}._value must be [low, high] with low <= high`);
    }
    if (kind === 'loguniform' && values[0] <= 0) {
      throw new Error(`${name}._value must be positive`);
    }
    if (kind === 'randint' && values[0] === values[1]) {
      throw new Error(`${name}._value must hold a whole number`);
    }
    if (kind === 'quniform' && !(values[2] > 0)) {
      throw new Error(`${name}._value must end with a step > 0`);
    }
    return { name, kind, range: RANGES[kind](values) };
  });
}

export class HillClimber {
  #space;
  #random;
  #sign;
  #best = null;
  #results = 0;

  /** `maximize`: whether larger results are better. */
  constructor(space, seed, maximize) {
    this.#space = readSpace(space);
    this.#random = randomNumbers(seed);
    this.#sign = maximize ? 1 : -1;
  }

  /** Later suggestions come from another space; what was learned belongs to the old one. */
  updateSpace(space) {
    this.#space = readSpace(space);
    this.#best = null;
    this.#results = 0;
  }

  /** One set of parameters, and in words why. */
  suggest() {
    const restart = this.#random() < RESTART_CHANCE;
    const climbs = this.#best !== null && this.#results >= FIRST_DRAWS && !restart;
    const parameters = {};
    for (const { name, range } of this.#space) {
      const draw = this.#random();
      if (!climbs || !(name in this.#best.parameters)) {
        parameters[name] = range.value(draw);
        continue;
      }
      const current = this.#best.parameters[name];
      if (range.jumps) {
        parameters[name] = draw < STEP ? range.value(this.#random()) : current;
      } else {
        parameters[name] = range.value(clamp(range.position(current) + STEP * (2 * draw - 1), 0, 1));
      }
    }
    return { parameters, reason: climbs ? 'near the best' : 'at random' };
  }

  /** Learns a result; anything but a finite number counts as none. */
  learn(parameters, value) {
    if (!Number.isFinite(value) || parameters === null || typeof parameters !== 'object') return;
    this.#results += 1;
    if (this.#best === null || this.#sign * value > this.#sign * this.#best.value) {
      this.#best = { parameters, value };
    }
  }
}

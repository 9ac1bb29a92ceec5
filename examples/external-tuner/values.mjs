// nni_proto.common.v1.Value to plain JavaScript and back.
//
// JavaScript has one kind of number and the contract has two: a whole number that came in as an
// integer must go out as one, and 1.0 as a float. `Whole` marks the integers.

export class Whole {
  constructor(value) {
    this.value = value;
  }
}

/** Plain values; integers become numbers, or BigInt where a number cannot hold them. */
export function fromValue(message) {
  switch (message?.kind) {
    case 'bool_value':
    case 'string_value':
    case 'float_value':
      return message[message.kind];
    case 'int_value':
    case 'big_int_value': {
      const whole = Number(message[message.kind]);
      return Number.isSafeInteger(whole) ? whole : BigInt(message[message.kind]);
    }
    case 'list_value':
      return (message.list_value.items ?? []).map(fromValue);
    case 'map_value':
      return Object.fromEntries(
        (message.map_value.entries ?? []).map(({ key, value }) => [key, fromValue(value)]),
      );
    case 'blob_value':
      throw new Error('the value lies in the byte store, which this server cannot reach');
    default:
      return null;
  }
}

/** A message; a number is a float unless it is wrapped in `Whole`. */
export function toValue(data) {
  if (data === null || data === undefined) return {};
  if (data instanceof Whole) return { int_value: String(data.value) };
  if (typeof data === 'boolean') return { bool_value: data };
  if (typeof data === 'number') return { float_value: data };
  if (typeof data === 'bigint') return { big_int_value: String(data) };
  if (typeof data === 'string') return { string_value: data };
  if (Array.isArray(data)) return { list_value: { items: data.map(toValue) } };
  const entries = Object.entries(data).map(([key, value]) => ({ key, value: toValue(value) }));
  return { map_value: { entries } };
}

// Hook for a value that stands in the address, and that the browser remembers for the next visit.

import { useEffect } from "preact/hooks";

import { useApp } from "./context";
import type { Field } from "./page_location";
import { usePreference } from "./preferences";

/**
 * Return a field's value and a function that changes it.
 *
 * The address wins; without the field in it, the value is the remembered one, which the address
 * then gets, so that a copied address shows the same.
 *
 * Args:
 *   field: name in the address.
 *   key: unique name under which the browser remembers the value; empty: not remembered.
 *   otherwise: the default, which the address does not hold.
 *   push: whether a change is a step for the browser's Back.
 */
export function usePlaceValue(
  field: Field,
  key: string,
  otherwise: string,
  push = false,
): [string, (value: string) => void] {
  const { place, go } = useApp();
  const [stored, setStored] = usePreference(key, otherwise);
  const remembered = key ? stored : otherwise;
  const given = place.values[field];
  useEffect(() => {
    if (given === undefined && remembered !== otherwise)
      go({ values: { [field]: remembered } }, "replace");
  }, [given]);
  const change = (value: string) => {
    if (key) setStored(value);
    go({ values: { [field]: value } }, push ? "push" : "replace");
  };
  return [given ?? remembered, change];
}

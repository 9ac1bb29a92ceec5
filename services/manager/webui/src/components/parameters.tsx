// List of parameter names and values.

import type { Json } from "../api/records";
import { parameterText } from "../format";

export function Parameters({ flat }: { flat: Record<string, Json> }) {
  const entries = Object.entries(flat);
  if (entries.length === 0) return <p class="muted">No parameters.</p>;
  return (
    <dl class="facts mono">
      {entries.map(([name, value]) => (
        <div key={name}>
          <dt>{name}</dt>
          <dd title={typeof value === "number" ? String(value) : undefined}>
            {parameterText(value)}
          </dd>
        </div>
      ))}
    </dl>
  );
}

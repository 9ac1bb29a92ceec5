// The manager over HTTP. Addresses are relative, so the page works under any prefix.

import type { Json } from "./records";

const ROOT = "api/v1/nni/";

/** What the manager refused or could not do, in its own words. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 if nobody answered. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** What to ask `page` for next; null behind the last one. */
  next: string | null;
  total: number;
}

/** Asks about one experiment, or about the installation. */
export class Client {
  /** Where the paths of the experiment begin. */
  readonly base: string;

  /** `id` is empty on the address of one experiment. */
  constructor(id: string) {
    this.base = id ? `${ROOT}experiments/${encodeURIComponent(id)}/` : ROOT;
  }

  /** Return the address of a path of the experiment, for links. */
  url(path: string): string {
    return this.base + path;
  }

  async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await unpack(await ask(this.base + path, signal ? { signal } : {}))) as T;
  }

  /** Ask what is about the installation and not about one experiment. */
  async installation<T>(path: string): Promise<T> {
    return (await unpack(await ask(ROOT + path, {}))) as T;
  }

  async page<T>(path: string, signal?: AbortSignal): Promise<Page<T>> {
    const answer = await ask(this.base + path, signal ? { signal } : {});
    const items = (await unpack(answer)) as T[];
    const query = /[?]([^>]*)>; rel="next"/.exec(answer.headers.get("link") ?? "");
    return {
      items,
      next: query ? `${path.split("?")[0]}?${query[1]}` : null,
      total: Number(answer.headers.get("x-total-count") ?? items.length),
    };
  }

  async send<T = Json>(method: "POST" | "PUT" | "DELETE", path: string, body?: Json): Promise<T> {
    const answer = await ask(this.base + path, {
      method,
      headers: { "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await unpack(answer)) as T;
  }

  /** Read text as it comes; returns when it ends. `take` is called with each piece. */
  async stream(path: string, signal: AbortSignal, take: (text: string) => void): Promise<void> {
    const answer = await ask(this.base + path, { signal });
    if (!answer.ok) await unpack(answer);
    const reader = answer.body!.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      take(value);
    }
  }
}

async function ask(address: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(address, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The manager does not answer. `nnictl up` starts it again.", 0);
  }
}

async function unpack(answer: Response): Promise<unknown> {
  const text = await answer.text();
  let data: unknown = null;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(
      `The manager answered with something else than JSON (${answer.status}).`,
      answer.status,
    );
  }
  if (!answer.ok) {
    const said = (data as { error?: unknown } | null)?.error;
    throw new ApiError(
      typeof said === "string" ? said : `${answer.status} ${answer.statusText}`,
      answer.status,
    );
  }
  return data;
}

/** Return what to tell a person about a failed request. */
export function words(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether a request was given up by the page itself. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

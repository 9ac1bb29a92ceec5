// REST client of the manager. URLs are relative, so the page works under any prefix.

import type { Json } from "./records";

const ROOT = "api/v1/nni/";

/** Error of a request, with the message of the manager. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** HTTP status; 0 without a response. */
    readonly status: number,
  ) {
    super(message);
  }
}

/** One page of a list. */
export interface Page<T> {
  items: T[];
  /** Path of the next page; null on the last page. */
  next: string | null;
  total: number;
}

/** Client of the routes of one experiment and of the installation. */
export class Client {
  /** Common prefix of the experiment's URLs. */
  readonly base: string;

  /** `id` is empty on the listener of one experiment. */
  constructor(id: string) {
    this.base = id ? `${ROOT}experiments/${encodeURIComponent(id)}/` : ROOT;
  }

  /** Return the URL of a path of the experiment, for links. */
  url(path: string): string {
    return this.base + path;
  }

  async get<T>(path: string, signal?: AbortSignal): Promise<T> {
    return (await parse(await request(this.base + path, signal ? { signal } : {}))) as T;
  }

  /** Return the response of a route of the installation. */
  async installation<T>(path: string): Promise<T> {
    return (await parse(await request(ROOT + path, {}))) as T;
  }

  async page<T>(path: string, signal?: AbortSignal): Promise<Page<T>> {
    const response = await request(this.base + path, signal ? { signal } : {});
    const items = (await parse(response)) as T[];
    const query = /[?]([^>]*)>; rel="next"/.exec(response.headers.get("link") ?? "");
    return {
      items,
      next: query ? `${path.split("?")[0]}?${query[1]}` : null,
      total: Number(response.headers.get("x-total-count") ?? items.length),
    };
  }

  /** Send a changing request; a repetition with the same `key` has no further effect. */
  async send<T = Json>(
    method: "POST" | "PUT" | "DELETE",
    path: string,
    body?: Json,
    key = requestKey(),
  ): Promise<T> {
    const response = await request(this.base + path, {
      method,
      headers: { "content-type": "application/json", "idempotency-key": key },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return (await parse(response)) as T;
  }

  /** Return a range of the bytes of a file, with the header that tells where they are. */
  async part(
    path: string,
    range: string,
    signal?: AbortSignal,
  ): Promise<{ bytes: Uint8Array; header: string | null }> {
    const response = await request(this.base + path, {
      headers: { range },
      ...(signal ? { signal } : {}),
    });
    if (response.status === 416) throw new ApiError("There is no such range.", 416);
    if (!response.ok) await parse(response);
    const bytes = new Uint8Array(await response.arrayBuffer());
    return { bytes, header: response.headers.get("content-range") };
  }

  /** Call `onBytes` with each chunk of a response; returns at its end. */
  async stream(
    path: string,
    signal: AbortSignal,
    onBytes: (bytes: Uint8Array) => void,
  ): Promise<void> {
    const response = await request(this.base + path, { signal });
    if (!response.ok) await parse(response);
    const reader = response.body!.getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      onBytes(value);
    }
  }
}

/** Return a new idempotency key; `crypto.randomUUID` needs HTTPS or loopback. */
export function requestKey(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return [...bytes].map((byte) => byte.toString(16).padStart(2, "0")).join("");
}

async function request(url: string, options: RequestInit): Promise<Response> {
  try {
    return await fetch(url, options);
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new ApiError("The manager does not respond. `nnictl up` starts it again.", 0);
  }
}

/** Return the JSON of a response; throw `ApiError` for errors. */
async function parse(response: Response): Promise<unknown> {
  const text = await response.text();
  let data: unknown = null;
  try {
    data = text ? JSON.parse(text) : null;
  } catch {
    throw new ApiError(
      `The response of the manager is not JSON (status ${response.status}).`,
      response.status,
    );
  }
  if (!response.ok) {
    const message = (data as { error?: unknown } | null)?.error;
    throw new ApiError(
      typeof message === "string" ? message : `${response.status} ${response.statusText}`,
      response.status,
    );
  }
  return data;
}

/** Return the message of an error. */
export function errorMessage(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** Whether the page itself aborted a request. */
export function isAbort(error: unknown): boolean {
  return error instanceof DOMException && error.name === "AbortError";
}

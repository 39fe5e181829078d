/** Calls of the console's API. Every refusal becomes a Refused, whose text says what to do. */

export class Refused extends Error {
  readonly status: number;
  readonly body: Readonly<Record<string, unknown>>;

  constructor(status: number, body: Readonly<Record<string, unknown>>, text: string) {
    super(text);
    this.status = status;
    this.body = body;
  }

  /** Somebody else has changed the network meanwhile. */
  get moved(): boolean {
    return this.status === 409;
  }
}

type Query = Readonly<Record<string, string | number | boolean | null | undefined>>;

export function address(path: string, query: Query = {}): string {
  const pairs = Object.entries(query).filter(
    ([, value]) => value !== null && value !== undefined && value !== "",
  );
  const text = new URLSearchParams(pairs.map(([key, value]) => [key, String(value)])).toString();
  return text === "" ? path : `${path}?${text}`;
}

/** A path of segments; each of them is encoded. */
export function route(...segments: readonly string[]): string {
  return `/api/${segments.map((segment) => encodeURIComponent(segment)).join("/")}`;
}

export async function get<T>(path: string, query: Query = {}): Promise<T> {
  return (await answered(await reached(address(path, query), {}))) as T;
}

export async function send<T>(method: "POST" | "PUT" | "DELETE", path: string, body?: unknown): Promise<T> {
  const request: RequestInit = { method };
  if (body !== undefined) {
    request.headers = { "content-type": "application/json" };
    request.body = JSON.stringify(body);
  }
  return (await answered(await reached(path, request))) as T;
}

export const post = <T>(path: string, body: unknown): Promise<T> => send<T>("POST", path, body);

async function reached(path: string, request: RequestInit): Promise<Response> {
  try {
    return await fetch(path, request);
  } catch {
    throw new Refused(0, {}, "The server does not answer. The run has ended, or this computer was asleep.");
  }
}

async function answered(response: Response): Promise<unknown> {
  const text = await response.text();
  const body: unknown = parsed(text);
  if (response.ok) return body;
  const fields = (typeof body === "object" && body !== null ? body : {}) as Record<string, unknown>;
  throw new Refused(response.status, fields, refusalText(response.status, fields));
}

function parsed(text: string): unknown {
  try {
    return text === "" ? null : JSON.parse(text);
  } catch {
    return null;
  }
}

/** What is wrong, what was found, what is expected, and a hint: as far as the server says them. */
export function refusalText(status: number, body: Readonly<Record<string, unknown>>): string {
  if (typeof body["error"] === "string") return body["error"];
  const parts = ["problem", "found", "expected", "hint"].flatMap((key) => {
    const value = body[key];
    return typeof value === "string" && value !== "" ? [key === "problem" ? value : `${key}: ${value}`] : [];
  });
  return parts.length > 0 ? parts.join("\n") : `The server refused this (${String(status)}).`;
}

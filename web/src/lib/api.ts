// One typed call to the API: the method, the path and what goes in are checked against the generated client, and so is
// what comes out. A refusal is thrown as a Problem, with the sentence that the server wrote for a person.
import { untrack } from "svelte";
import type { components, paths } from "../api";
import { here } from "./here.svelte";

// What the server answers is complete: a field that may be left out of a request is there in an answer all the same.
type Whole<T> = T extends readonly unknown[]
  ? { [K in keyof T]: Whole<T[K]> }
  : T extends object
    ? { [K in keyof T]-?: Whole<T[K]> }
    : T;
export type Schemas = { [Name in keyof components["schemas"]]: Whole<components["schemas"][Name]> };
type Method = "get" | "post" | "patch" | "delete" | "put";

type Operation<P extends keyof paths, M extends Method> = M extends keyof paths[P] ? paths[P][M] : never;
type PathsWith<M extends Method> = {
  [P in keyof paths]: Operation<P, M> extends { responses: unknown } ? P : never;
}[keyof paths];
type Json<R> = R extends { content: { "application/json": infer Body } } ? Body : undefined;
type Success<O> = O extends { responses: infer R }
  ? Json<R[keyof R & (200 | 201 | 202)]> extends infer Body
    ? Whole<Body>
    : never
  : never;
type Part<O, Name extends string> = O extends { parameters: { [K in Name]?: infer Given } } ? NonNullable<Given> : never;
type Body<O> = O extends { requestBody?: infer B }
  ? NonNullable<B> extends { content: { "application/json": infer Given } }
    ? Given
    : never
  : never;

export interface Sent<O> {
  path?: Part<O, "path">;
  query?: Part<O, "query">;
  body?: Body<O>;
  /** Only for signing in: everything else goes by cookie. */
  key?: string;
  signal?: AbortSignal;
}

export class Problem extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly existingId?: string,
  ) {
    super(message);
  }
}

export const UNREACHABLE = "unreachable";

/** Why something written was not taken, to be said beside it; it stays there. */
export function whyNot(problem: Problem): string {
  if (problem.code !== UNREACHABLE) return problem.message;
  return here.reachable ? "The server is back: try again." : "The server does not answer. What you wrote stays here until it is back.";
}

export async function api<M extends Method, P extends PathsWith<M>>(
  method: M,
  path: P,
  sent: Sent<Operation<P, M>> = {},
): Promise<Success<Operation<P, M>>> {
  const answer = await answered(method, path, sent);
  return (answer.status === 204 ? undefined : await answer.json()) as Success<Operation<P, M>>;
}

/** The same for what is not JSON, such as a picture: its text. */
export async function apiText<P extends PathsWith<"get">>(path: P, sent: Sent<Operation<P, "get">> = {}): Promise<string> {
  return (await answered("get", path, sent)).text();
}

async function answered(method: Method, path: string, sent: Sent<unknown>): Promise<Response> {
  const answer = await reach(address(path, sent.path, sent.query), {
    method: method.toUpperCase(),
    headers: headers(sent),
    body: sent.body === undefined ? null : JSON.stringify(sent.body),
    signal: sent.signal ?? null,
  });
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function reach(url: string, request: RequestInit): Promise<Response> {
  untrack(() => (here.pending += 1)); // whoever asks does not depend on it
  try {
    const answer = await fetch(url, request);
    here.answered();
    return answer;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    here.lost();
    throw new Problem(0, UNREACHABLE, "The server does not answer.");
  } finally {
    here.pending -= 1;
  }
}

async function refusal(answer: Response): Promise<Problem> {
  const said: unknown = await answer.json().catch(() => null);
  const problem = (said ?? {}) as Partial<Schemas["Problem"]>;
  if (answer.status === 401) here.signedOut(problem.message ?? "");
  const message = problem.message ?? `The server answered with ${answer.status}.`;
  return new Problem(answer.status, problem.code ?? "error", message, problem.existing_id ?? undefined);
}

function headers(sent: { body?: unknown; key?: string }): Record<string, string> {
  const wanted: Record<string, string> = { "X-Recollect": "page" };
  if (here.space) wanted["X-Recollect-Space"] = here.space;
  if (sent.body !== undefined) wanted["Content-Type"] = "application/json";
  if (sent.key !== undefined) wanted["Authorization"] = `Bearer ${sent.key}`;
  return wanted;
}

function address(path: string, inPath: unknown, query: unknown): string {
  const filled = path.replace(/\{(\w+)\}/g, (_, name: string) =>
    encodeURIComponent(String((inPath as Record<string, unknown>)[name])),
  );
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries((query ?? {}) as Record<string, unknown>)) {
    for (const one of Array.isArray(value) ? value : [value]) {
      if (one !== undefined && one !== null && one !== "") search.append(name, String(one));
    }
  }
  const said = search.toString();
  return `.${filled}${said ? `?${said}` : ""}`;
}

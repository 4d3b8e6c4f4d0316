// Where we are: `#/recall?q=tea` is the path `recall` with the parameters q; `#/node/3f2a` has the rest `3f2a`.
class Route {
  path = $state("");
  rest = $state("");
  params = $state.raw(new URLSearchParams());

  constructor() {
    addEventListener("hashchange", () => this.read());
    this.read();
  }

  read(): void {
    const [where = "", query = ""] = location.hash.replace(/^#\/?/, "").split("?", 2);
    const [path = "", ...rest] = where.split("/");
    this.path = path;
    this.rest = rest.map(decoded).join("/");
    this.params = new URLSearchParams(query);
  }

  go(hash: string): void {
    location.hash = hash;
  }

  /** Change the parameters in the address line, without a step in the history and without leaving the view. */
  note(params: Record<string, string>): void {
    const said = new URLSearchParams(Object.entries(params).filter(([, value]) => value !== "")).toString();
    const rest = this.rest ? `/${encodeURIComponent(this.rest)}` : "";
    history.replaceState(history.state, "", `#/${this.path}${rest}${said ? `?${said}` : ""}`);
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Route();
export const nodeLink = (id: string): string => `#/node/${id}`;
/** A node, opened at a passage of its text. */
export const passageLink = (id: string, from: number, to: number): string => `${nodeLink(id)}?from=${from}&to=${to}`;
export const planLink = (id: string): string => `#/plans/${id}`;
export const caseLink = (id: string): string => `#/cases/${id}`;
/** Where a node is shown best: a page of the wiki and a case have views of their own. */
export function linkTo({ id, kind }: { id: string; kind: string }): string {
  return kind === "page" ? pageLink(id) : kind === "case" ? caseLink(id) : nodeLink(id);
}
export const pageLink = (name: string): string => `#/pages/${encodeURIComponent(name)}`;

// A score as the sum that it is: each part times its weight.
import type { Schemas } from "./api";

export interface Counted {
  name: string;
  part: number;
  weight: number;
  value: number;
}

/** What a score is made of; what counts for nothing is left out. */
export function counts(hit: Schemas["Hit"], weights: Record<string, number>): Counted[] {
  const parts = hit.parts as Record<string, number>;
  return Object.entries(weights)
    .map(([name, weight]) => ({ name, part: parts[name] ?? 0, weight, value: weight * (parts[name] ?? 0) }))
    .filter((one) => one.name !== "bonus" || one.value > 0);
}

const FOUND_BY: Record<string, string> = {
  both: "by its words and its meaning",
  words: "by its words",
  vector: "by its meaning",
  neighbour: "beside another match",
  graph: "by a link from another match",
};

/** How well a hit answers, in words: relevance means the same everywhere, so these do too. */
export function match(hit: Schemas["Hit"]): string {
  const { relevance } = hit.parts;
  return relevance >= 0.65 ? "strong match" : relevance >= 0.4 ? "good match" : relevance >= 0.25 ? "fair match" : "weak match";
}

/** Why a hit is here, as a sentence. */
export function why(hit: Schemas["Hit"]): string {
  const beside = hit.parts.flow > 0.1 && hit.source !== "neighbour" ? "; what stands beside it matches too" : "";
  return `Found ${FOUND_BY[hit.source] ?? hit.source}${beside}.`;
}

// Taking a case out of the bank, and bringing it back; told after, with the way back at hand.
import { api, type Schemas } from "./api";
import { here } from "./here.svelte";
import { act } from "./resource.svelte";
import { say } from "./said.svelte";

export async function retire(one: Schemas["Case"]): Promise<void> {
  const path = { id: one.case_id };
  if (one.status === "active") {
    const archived = await act(() => api("post", "/api/v1/cases/{id}/archive", { path, body: {} }));
    if (archived) say("Archived: out of search, and kept.", { act: { text: "Restore", does: () => void retire(archived) } });
  } else if (await act(() => api("post", "/api/v1/cases/{id}/restore", { path }))) {
    say("Restored.");
  }
  here.epoch += 1;
}

// Light, dark, or as the system is. public/assets/theme.js applies what was chosen before the page is drawn.
import { keep, kept } from "./here.svelte";

const KEPT = "recollect.theme";
const NAMES = { system: "System theme", light: "Light", dark: "Dark" };
type Choice = keyof typeof NAMES;
const ORDER: Choice[] = ["system", "light", "dark"];

const given = kept(KEPT);
let choice = $state<Choice>(given === "light" || given === "dark" ? given : "system");

export const theme = {
  get name(): string {
    return NAMES[choice];
  },
};

export function nextTheme(): void {
  choice = ORDER[(ORDER.indexOf(choice) + 1) % ORDER.length]!;
  keep(KEPT, choice === "system" ? null : choice);
  if (choice === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = choice;
}

// The web page of Recollect.
//
// How it hangs together:
//   lib/    api.ts (one typed call to the API), here.svelte.ts (who and where we are, is the server there), and small help
//   parts/  what every view is made of: Bar, Empty, Failure, Time, Confirm, Progress, Said
//   views/  one file a view, listed in views/index.ts
//
// How to add a view:
//   1. Write views/Name.svelte. It gets `rest` (what follows its path, such as an id) and `params` (what follows `?`).
//      Read with `resource(() => api("get", "/api/v1/..."))`: it loads, loads again when the space changes or the server
//      comes back, and has `data`, `error` and `reload()`. Write with `act(() => api("post", ...))`: a refusal is shown as
//      the sentence that the API gives.
//   2. Add a line to views/index.ts: path, title, the letter after `g`, whether it stands in the navigation.
//   3. `./run web` makes the client anew, checks the types and builds; commit what it built.
//   4. A journey in tests/web, and axe over the view.
//
// What others wrote is shown as text, always: `{value}`, never `{@html}`. No style attribute in markup (the content
// security policy refuses it): `style:width` is fine, and classes are better.
import { mount } from "svelte";
import App from "./App.svelte";
import "./app.css";

mount(App, { target: document.getElementById("app")! });

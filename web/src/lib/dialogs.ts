// How a dialog tells that it was closed: `<dialog {...closing(() => (open = false))}>`.
// Escape counts at once (`cancel`), since the browser tells of `close` only later, as a task of its own: by then the
// dialog may be open again, and what is open again was not closed.
export function closing(closed: () => void) {
  return {
    oncancel: (event: Event) => {
      if (event.target === event.currentTarget) closed();
    },
    onclose: (event: Event) => {
      if (!(event.currentTarget as HTMLDialogElement).open) closed();
    },
  };
}

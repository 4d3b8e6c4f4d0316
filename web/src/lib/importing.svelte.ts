// Files that somebody chose to import as memories; parts/Dropped shows what would come of them, and imports them.
export interface Chosen {
  path: string;
  file: File;
}

export const importing = $state<{ chosen: readonly Chosen[] | null }>({ chosen: null });

/** From anywhere, without a field on the page. */
export function chooseFiles(): void {
  const field = Object.assign(document.createElement("input"), { type: "file", multiple: true });
  field.onchange = () => importFiles(field.files);
  field.click();
}

export function importFiles(files: FileList | null): void {
  const some = [...(files ?? [])].map((file) => ({ path: file.webkitRelativePath || file.name, file }));
  // What begins with a dot is a program's own, not what somebody wrote.
  const written = some.filter(({ path }) => !path.split("/").some((part) => part.startsWith(".")));
  if (written.length) importing.chosen = written;
}

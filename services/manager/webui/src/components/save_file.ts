// Files that the page makes and the browser saves.

/** Have the browser save data as a file. */
export function saveFile(data: Blob, name: string): void {
  const address = URL.createObjectURL(data);
  const link = document.createElement("a");
  link.href = address;
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(address), 60_000);
}

// Copies tracebacks. Where there are no scripts, or pages may not write to the clipboard, the buttons stay hidden.

const SHOWN = 2000; // Milliseconds for which a button says what it has done.

async function copy(button) {
  const pieces = [...button.closest("details").querySelectorAll("pre")];
  try {
    await navigator.clipboard.writeText(pieces.map((each) => each.textContent).join("\n"));
    return "Copied";
  } catch {
    return "Not copied";
  }
}

for (const button of document.querySelectorAll("[data-copy]")) {
  if (!navigator.clipboard) break;
  const label = button.textContent;
  button.hidden = false;
  button.addEventListener("click", async () => {
    button.textContent = await copy(button);
    setTimeout(() => (button.textContent = label), SHOWN);
  });
}

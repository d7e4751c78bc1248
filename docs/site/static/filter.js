// The page of all settings: a field that hides the rows without the words in it.
document.addEventListener("DOMContentLoaded", () => {
  const field = document.getElementById("filter");
  if (!field) return;
  const rows = [...document.querySelectorAll("table.docutils tbody tr")].map((row) => [row, row.textContent.toLowerCase()]);
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const [row, text] of rows) row.hidden = !words.every((word) => text.includes(word));
  });
});

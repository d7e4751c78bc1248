// saving a text as a file, and rows of cells as CSV
const save = (name, text, kind) => {
  const link = document.createElement("a");
  link.setAttribute("href", URL.createObjectURL(new Blob([text], {type: kind})));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.getAttribute("href")), 1000);
};
const quoted = cell => /[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell;
const asCsv = rows => rows.map(row => row.map(quoted).join(",")).join("\n") + "\n";

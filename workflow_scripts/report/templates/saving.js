// saving a text as a file, and rows of cells as CSV; spreadsheets take a CSV for UTF-8 if it begins with a byte-order mark
const save = (name, text, kind) => {
  const link = document.createElement("a");
  link.setAttribute("href", URL.createObjectURL(new Blob([kind === "text/csv" ? "\ufeff" : "", text], {type: kind})));
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.getAttribute("href")), 1000);
};
const quoted = cell => /[",\r\n]/.test(cell) ? `"${cell.replace(/"/g, '""')}"` : cell;
const asCsv = rows => rows.map(row => row.map(quoted).join(",")).join("\n") + "\n";

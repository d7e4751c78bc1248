"use strict";
// p below 0.001 counts as 0.001
// a click, or Enter, on the head of a column sorts its table; a second one turns the order round
const value = cell => {
  const text = cell.textContent.trim().replace("\u2212", "-");
  const number = text.replace(/(\d),(?=\d{3})/g, "$1").match(/^[+<\s]*(-?\d+(?:\.\d+)?(?:e[+-]?\d+)?)/);
  return number ? Number(number[1]) : text.toLowerCase();
};
for (const table of document.querySelectorAll(".wide table")) {
  const heads = table.tHead && table.tHead.rows.length === 1 ? [...table.tHead.rows[0].cells] : [];
  const body = table.tBodies[0];
  // a row without a head goes on with the row above, so it cannot move alone
  if (!body || [...body.rows].some(row => row.cells.length !== heads.length || !row.cells[0].textContent.trim())) continue;
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    button.title = "sort by this column";
    head.append(button);
    button.addEventListener("click", () => {
      const order = head.getAttribute("aria-sort") === "ascending" ? -1 : 1;
      heads.forEach(other => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", order === 1 ? "ascending" : "descending");
      const rows = [...body.rows].map(row => [value(row.cells[column]), row]);
      rows.sort(([a], [b]) => order * (typeof a === typeof b ? (a < b ? -1 : a > b ? 1 : 0) : typeof a === "number" ? -1 : 1));
      body.append(...rows.map(([, row]) => row));
    });
  });
}
// paper cannot be clicked open
addEventListener("beforeprint", () => document.querySelectorAll("details").forEach(each => each.open = true));

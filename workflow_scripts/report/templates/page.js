// links to headings and figures
document.querySelectorAll("figure").forEach((figure, place) => { figure.id ||= `figure-${place + 1}`; });
for (const head of document.querySelectorAll("main h2[id], main h3")) {
  if (!head.id) {
    const before = [...document.querySelectorAll("main h2[id], main h3")], at = before.indexOf(head);
    head.id = `part-${at}`;
  }
  const link = document.createElement("a");
  link.className = "anchor";
  link.setAttribute("aria-label", `link to: ${head.textContent.trim()}`);
  link.setAttribute("href", `#${head.id}`);
  link.append("#");
  head.append(" ", link);
}

// the contents stay in view where the window is wide, and open with a button where it is not
const contents = document.getElementById("contents"), wide = matchMedia("(min-width: 80rem)");
const unfold = () => { contents.open = wide.matches; };
wide.addEventListener("change", unfold);
unfold();
contents.addEventListener("click", event => { if (event.target.matches("a") && !wide.matches) contents.open = false; });
const seen = () => {
  const links = [...contents.querySelectorAll("a")], top = scrollY + 120;
  const here = links.filter(link => (document.getElementById(decodeURIComponent(link.hash.slice(1)))?.getBoundingClientRect().top ?? Infinity) + scrollY <= top).pop();
  links.forEach(link => link.toggleAttribute("aria-current", link === here));
};
addEventListener("scroll", seen, {passive: true});
seen();

// a link into something folded unfolds it
const open = () => {
  for (let at = document.getElementById(decodeURIComponent(location.hash.slice(1))); at; at = at.parentElement)
    if (at.matches("details:not(#contents)")) at.open = true;
};
addEventListener("hashchange", open);
open();

// saving and copying: tables as CSV and LaTeX, figures as SVG
const heads = [...document.querySelectorAll("main h2[id], main h3[id]")], names = new Map();
const slug = text => text.replace(/[^\p{L}\p{N}_-]+/gu, "-").replace(/^-+|-+$/g, "");
// a file is named after its table or figure, or after the part that it stands in; each has a name of its own
const named = part => {
  if (names.has(part)) return names.get(part);
  const above = heads.filter(head => head.compareDocumentPosition(part) & Node.DOCUMENT_POSITION_FOLLOWING);
  const [section] = above.filter(head => head.matches("h2")).slice(-1), [head] = above.slice(-1);
  const within = head && head !== section ? `-${slug(head.firstChild.textContent)}` : "";
  const name = `${slug(document.title)}-${part.id || (section?.id ?? "table") + within}`, taken = [...names.values()];
  let free = name;
  for (let number = 2; taken.includes(free); number++) free = `${name}-${number}`;
  names.set(part, free);
  return free;
};
// the lines of an element that may be hidden, where browsers know of no line breaks
const linesOf = element => {
  const copy = element.cloneNode(true);
  copy.querySelectorAll("br").forEach(each => each.replaceWith("\u2028"));
  return copy.textContent.split("\u2028").map(text => text.replace(/\s+/g, " ").trim()).filter(Boolean);
};
const worded = cell => {
  const small = [...cell.querySelectorAll("small")].flatMap(linesOf);
  const copy = cell.cloneNode(true);
  copy.querySelectorAll("small, .anchor").forEach(each => each.remove());
  const main = copy.textContent.replace(/\s+/g, " ").trim();
  return small.length ? `${main} (${small.join("; ")})` : main;
};
const rowsOf = table => [...table.rows].map(row => [...row.cells].map(worded));
// as programs read numbers: with a hyphen, and without commas; texts of corpora stay as they are
const plainly = text => text.replace(/\u2212(?=\d)/g, "-").replace(/(?<=\d),(?=\d{3}(?!\d))/g, "");
const plainRowsOf = table => [...table.rows].map(row => [...row.cells].map(cell => cell.lang ? worded(cell) : plainly(worded(cell))));
const ESCAPES = {"\\": "\\textbackslash{}", "~": "\\textasciitilde{}", "^": "\\textasciicircum{}", "\u00b1": "$\\pm$", "\u2212": "$-$", "\u2020": "$^\\dagger$", "\u2021": "$^\\ddagger$", "<": "$<$", ">": "$>$", "|": "\\textbar{}"};
const escaped = text => text.replace(/[\\&%$#_{}~^\u00b1\u2212\u2020\u2021<>|]/g, sign => ESCAPES[sign] ?? `\\${sign}`);
const signaturesOf = table => {
  let at = table.closest(".wide") ?? table;
  while ((at = at.nextElementSibling) && !at.matches("h2, h3")) if (at.matches(".signatures")) return linesOf(at);
  return [];
};
const latex = table => {
  const rows = rowsOf(table), columns = Math.max(...rows.map(row => row.length)), head = table.tHead ? table.tHead.rows.length : 0;
  const line = row => `${row.map(escaped).join(" & ")} \\\\`;
  const legend = table.caption ? [`\\caption{${escaped(table.caption.innerText.replace(/\s+/g, " ").trim())}}`] : [];
  const tabular = [`\\begin{tabular}{l${"r".repeat(columns - 1)}}`, "\\toprule", ...rows.slice(0, head).map(line), ...(head ? ["\\midrule"] : []), ...rows.slice(head).map(line), "\\bottomrule", "\\end{tabular}"];
  return [...signaturesOf(table).map(text => `% ${text}`), "\\begin{table}", ...legend, ...tabular, "\\end{table}"].join("\n") + "\n";
};
const button = (name, label, does) => {
  const made = document.createElement("button");
  made.type = "button";
  made.append(name);
  made.setAttribute("aria-label", label);
  made.addEventListener("click", does);
  return made;
};
// what copies a text says so when it has
const copying = (label, text) => {
  const made = button("copy", label, async () => {
    await navigator.clipboard.writeText(text());
    made.textContent = "copied";
  });
  return made;
};
for (const command of document.querySelectorAll(".command")) {
  const tools = document.createElement("span");
  tools.className = "tools";
  tools.append(copying("copy this command", () => command.textContent));
  command.after(" ", tools);
}
for (const box of document.querySelectorAll(".wide")) {
  const table = box.querySelector("table");
  if (!table?.rows.length) continue;
  named(table); // in the order of the page
  const tools = document.createElement("p");
  tools.className = "tools";
  tools.append(button("CSV", "save this table as CSV", () => save(`${named(table)}.csv`, asCsv(plainRowsOf(table)), "text/csv")),
    button("LaTeX", "save this table as LaTeX", () => save(`${named(table)}.tex`, latex(table), "text/x-tex")),
    copying("copy this table", () => plainRowsOf(table).map(row => row.join("\t")).join("\n")));
  box.after(tools);
}
const drawn = chart => {
  const copy = chart.cloneNode(true), style = getComputedStyle(document.documentElement);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  const rules = document.createElementNS("http://www.w3.org/2000/svg", "style");
  rules.append("text{font-family:sans-serif;font-size:12px;fill:" + style.getPropertyValue("--soft") + "} .axis{stroke:" + style.getPropertyValue("--soft")
    + "} .grid{stroke:" + style.getPropertyValue("--line") + "} .join{stroke:" + style.getPropertyValue("--soft") + ";stroke-opacity:.3}");
  copy.prepend(rules);
  return new XMLSerializer().serializeToString(copy).replace(/var\((--[\w-]+)\)/g, (_, name) => style.getPropertyValue(name).trim());
};
for (const figure of document.querySelectorAll("figure")) {
  const chart = figure.querySelector("svg"), tools = document.createElement("p");
  if (!chart) continue;
  const link = document.createElement("a");
  link.className = "anchor";
  link.setAttribute("aria-label", "link to this figure");
  link.setAttribute("href", `#${figure.id}`);
  link.append("#");
  tools.className = "tools";
  tools.append(button("SVG", "save this figure as SVG", () => save(`${named(figure)}.svg`, drawn(chart), "image/svg+xml")), link);
  figure.append(tools);
}

// a click on a name in the legend hides its line
for (const key of document.querySelectorAll("svg .key")) {
  const name = key.dataset.name, chart = key.closest("svg");
  const lines = [...chart.querySelectorAll(".series")].filter(each => each.dataset.name === name);
  if (!lines.length) continue;
  key.setAttribute("role", "button");
  key.setAttribute("tabindex", "0");
  key.setAttribute("aria-pressed", "true");
  key.setAttribute("aria-label", `show ${name}`);
  const turn = () => {
    const hidden = key.getAttribute("aria-pressed") === "true";
    key.setAttribute("aria-pressed", String(!hidden));
    lines.forEach(line => line.classList.toggle("off", hidden));
  };
  key.addEventListener("click", turn);
  key.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); turn(); } });
}

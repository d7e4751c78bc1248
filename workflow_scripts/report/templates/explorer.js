// Rows of [line, text, what is right, …], of which some are chosen, sorted and shown. What a page shows has a script of its own:
// textsOf, lengthOf, gapOf and tableOf of a row, and what it adds to SHOWN, ORDER and KEPT.
const {arms, rows, ...more} = JSON.parse(document.getElementById("data").textContent);
const ask = Object.fromEntries([...document.querySelectorAll(".ask [id]")].map(field => [field.id, field]));
const PAGE = 50;
let shown = PAGE, found = [];

// in scripts without spaces each character counts as a word; vowel signs and accents belong to their letters
const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const WORD = `[${UNSPACED}]\\p{M}*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`;
const WORDS = new RegExp(WORD, "gu"), PARTS = new RegExp(`(${WORD})`, "u");
const wordsOf = text => text.toLowerCase().match(WORDS) ?? [];
const written = (number, places = 1) => (number < 0 ? "\u2212" : "") + Math.abs(number).toFixed(places);
const signed = (number, places = 1) => (number > 0 ? "+" : "") + written(number, places);
const placeOf = name => arms.indexOf(ask[name].value);
const number = (name, otherwise) => ask[name].value === "" ? otherwise : Number(ask[name].value);

// its attributes come last: with `dir` set before, a browser looks for the direction again with each part
const made = (name, content, attributes = {}) => {
  const element = document.createElement(name);
  element.append(...[content].flat());
  return Object.assign(element, attributes);
};

// a row of a table: its head, and a cell of text in a language
const line = (body, name, content, code) => {
  const row = body.insertRow();
  row.append(made("th", name, {scope: "row"}), made("td", content, {lang: code, dir: "auto"}));
  return row;
};

const SHOWN = {all: () => true, better: row => gapOf(row) > 0, worse: row => gapOf(row) < 0, equal: row => gapOf(row) === 0};
const ORDER = {
  gap: (a, b) => gapOf(b) - gapOf(a) || a[0] - b[0],
  loss: (a, b) => gapOf(a) - gapOf(b) || a[0] - b[0],
  line: (a, b) => a[0] - b[0],
  length: (a, b) => lengthOf(b) - lengthOf(a) || a[0] - b[0],
};
const KEPT = [
  row => Math.abs(gapOf(row)) >= number("least", 0),
  row => lengthOf(row) >= number("shortest", 0) && lengthOf(row) <= number("longest", Infinity),
];
const CHANGED = [];

const show = () => {
  document.getElementById("rows").replaceChildren(...found.slice(0, shown).map(tableOf));
  document.getElementById("more").hidden = shown >= found.length;
};

const look = () => {
  const wanted = ask.search.value.trim().toLowerCase();
  const has = row => !wanted || textsOf(row).some(text => text.toLowerCase().includes(wanted));
  found = rows.filter(row => has(row) && KEPT.every(keeps => keeps(row)) && SHOWN[ask.show.value](row)).sort(ORDER[ask.sort.value]);
  shown = PAGE;
  const count = kind => rows.filter(SHOWN[kind]).length;
  document.getElementById("counts").textContent = `${found.length} of ${rows.length} ${INPUTS}. Of all, ${ask.mine.value} is better than `
    + `${ask.theirs.value} in ${count("better")}, worse in ${count("worse")}, equal in ${count("equal")}.`;
  show();
};

// a table of numbers: heads, and rows that begin with a name
const numbers = (heads, body, caption) => {
  const table = document.createElement("table"), head = table.createTHead().insertRow();
  table.createCaption().append(caption);
  heads.forEach((name, place) => head.append(made("th", name, {scope: "col", className: place ? "n" : ""})));
  const rest = table.createTBody();
  for (const [name, ...cells] of body) {
    const row = rest.insertRow();
    row.append(made("th", name, {scope: "row"}), ...cells.map(cell => made("td", cell instanceof Node ? cell : String(cell), {className: "n"})));
  }
  return table;
};
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;

const begin = () => {
  const renew = () => { for (const changed of [look, ...CHANGED]) changed(); };
  let pause; // in typing
  for (const field of Object.values(ask)) field.addEventListener("input", () => {
    clearTimeout(pause);
    if (field.id === "search") pause = setTimeout(renew, 150);
    else renew();
  });
  document.querySelector("form").addEventListener("submit", event => event.preventDefault());
  document.getElementById("more").addEventListener("click", () => { shown += PAGE; show(); });
  renew();
};

// Rows of [line, text, what is right, …], of which some are chosen, sorted and shown. What a page shows has a script of its own:
// lengthOf, tableOf and scoresIn of a row, its COLUMNS, and what it adds to SHOWN, ORDER and KEPT.
// A column is a name, a function from a row to its texts, and whether the search looks there; the first text of some stands for all.
// That of an arm has its number, and a text for each seed that is asked for. Of answers and scores a row has those of all arms with the
// first seed, then those of all arms with the next.
const {arms, seeds, rows, ...more} = JSON.parse(document.getElementById("data").textContent);
const ask = Object.fromEntries([...document.querySelectorAll(".ask [id]")].map(field => [field.id, field]));
const PAGE = 50;
let shown = PAGE, found = [];

// in scripts without spaces each character counts as a word; vowel signs and accents belong to their letters
const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const WORD = `[${UNSPACED}]\\p{M}*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`;
const WORDS = new RegExp(WORD, "gu"), PARTS = new RegExp(`(${WORD})`, "u");
// a letter and its accent are one character or two, which look alike
const plain = text => text.normalize("NFC").toLowerCase();
const wordsOf = text => plain(text).match(WORDS) ?? [];
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

// the seeds that are asked for, by their places, and where in a row the answers of an arm with them are
const seedPlaces = () => ask.seed?.value ? [seeds.indexOf(Number(ask.seed.value))] : [...seeds.keys()];
const placesOf = arm => seedPlaces().map(place => place * arms.length + arm);
const armOf = place => arms[place % arms.length], seedOf = place => seeds[Math.floor(place / arms.length)];
const mean = values => values.reduce((sum, value) => sum + value, 0) / values.length;
let gaps = new Map();
const gapOf = row => gaps.get(row);
const findGaps = () => {
  const [mine, theirs] = [placesOf(placeOf("mine")), placesOf(placeOf("theirs"))];
  // rounded, as sums of the same numbers may differ in their last digits
  gaps = new Map(rows.map(row => [row, Math.round(1e6 * mean(mine.map((at, i) => scoresIn(row)[at] - scoresIn(row)[theirs[i]]))) / 1e6]));
};
// the answers of an arm with the seeds that are asked for, equal ones together: their places, and which seeds they are of if they differ
const answersOf = (row, arm, answers) => {
  const same = new Map();
  for (const place of placesOf(arm)) {
    const key = JSON.stringify(answers[place]);
    same.set(key, [...(same.get(key) ?? []), place]);
  }
  return [...same.values()].map(places => {
    const of = `seed${places.length > 1 ? "s" : ""} ${places.map(seedOf).join(", ")}`;
    return {at: places[0], of: same.size > 1 ? [made("small", of)] : []};
  });
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
  row => !ask.line.value || row[0] === Number(ask.line.value),
];
const CHANGED = [];

const show = () => {
  document.getElementById("rows").replaceChildren(...found.slice(0, shown).map(tableOf));
  document.getElementById("more").hidden = shown >= found.length;
};

// the texts of a row, by column, as the search compares them
let plainTexts = new Map();
const plainTextsOf = row => {
  if (!plainTexts.has(row)) plainTexts.set(row, COLUMNS.filter(column => column.searched).map(column => column.texts(row).map(plain)));
  return plainTexts.get(row);
};

const look = () => {
  findGaps();
  const wanted = plain(ask.search.value.trim());
  const looksIn = row => ask.in.value === "" ? plainTextsOf(row).flat() : plainTextsOf(row)[ask.in.value];
  const has = row => !wanted || looksIn(row).some(text => text.includes(wanted));
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

// The address of the page says what is asked, as far as it is not asked from the beginning: #search=word&line=448
const FIRST = Object.fromEntries(Object.entries(ask).map(([name, field]) => [name, field.value]));
const addressOf = values => {
  const changed = Object.entries(values).filter(([name, value]) => value !== FIRST[name]);
  return changed.length ? `#${new URLSearchParams(changed)}` : "#";
};
const readAddress = () => {
  const said = new URLSearchParams(location.hash.slice(1));
  for (const [name, field] of Object.entries(ask)) {
    field.value = said.get(name) ?? FIRST[name];
    if (field.selectedIndex === -1) field.value = FIRST[name]; // an address of another page
  }
};
const writeAddress = () => {
  const address = addressOf(Object.fromEntries(Object.entries(ask).map(([name, field]) => [name, field.value])));
  if (address !== (location.hash || "#")) history.replaceState(null, "", address);
};
// what a row is called, as a link to a page that shows it alone
const linkTo = row => {
  const link = made("a", `Line ${row[0]}`);
  link.setAttribute("href", addressOf({line: String(row[0]), mine: ask.mine.value, theirs: ask.theirs.value, ...(ask.seed && {seed: ask.seed.value})}));
  return link;
};

const asTable = () => {
  const several = seedPlaces().length > 1;
  const named = (name, place) => several ? `${name}, seed ${seedOf(place)}` : name;
  const saved = COLUMNS.flatMap(column => column.arm === undefined
    ? [[column.name, column.saved ?? (row => column.texts(row)[0])]]
    : placesOf(column.arm).map((place, i) => [named(column.name, place), row => column.texts(row)[i]]));
  const scores = arms.flatMap((arm, number) => placesOf(number).map(place => [named(`score of ${arm}`, place), row => scoresIn(row)[place]]));
  const gap = [[`${ask.mine.value} \u2212 ${ask.theirs.value}${several ? ", mean over seeds" : ""}`, row => Number(gapOf(row).toFixed(4))]];
  const columns = [["line", row => row[0]], ...saved, ...scores, ...gap];
  return [columns.map(([name]) => name), ...found.map(row => columns.map(([, cell]) => String(cell(row))))];
};

const begin = () => {
  COLUMNS.filter(column => column.searched).forEach(({name}, place) => ask.in.append(made("option", name, {value: String(place)})));
  ask.in.closest("label").hidden = ask.in.options.length < 3;
  const renew = () => { for (const changed of [look, ...CHANGED, writeAddress]) changed(); };
  readAddress();
  addEventListener("hashchange", () => { plainTexts = new Map(); readAddress(); renew(); });
  document.getElementById("csv").addEventListener("click", () => save(`${NAME}.csv`, asCsv(asTable()), "text/csv"));
  let pause; // in typing
  for (const field of Object.values(ask)) field.addEventListener("input", () => {
    clearTimeout(pause);
    if (field.id === "seed") plainTexts = new Map();
    if (field.id === "search") pause = setTimeout(renew, 150);
    else renew();
  });
  document.querySelector("form").addEventListener("submit", event => event.preventDefault());
  document.getElementById("more").addEventListener("click", () => { shown += PAGE; show(); });
  renew();
};

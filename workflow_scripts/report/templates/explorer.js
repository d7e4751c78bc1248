"use strict";
const {arms, rows} = JSON.parse(document.getElementById("data").textContent);
const ask = Object.fromEntries(["search", "mine", "theirs", "show", "least", "shortest", "longest", "rare", "sort"].map(name => [name, document.getElementById(name)]));
const PAGE = 50;
let shown = PAGE, found = [];

// in scripts without spaces each character counts as a word; vowel signs and accents belong to their letters
const UNSPACED = "\\p{Script=Han}\\p{Script=Hiragana}\\p{Script=Katakana}\\p{Script=Thai}\\p{Script=Lao}\\p{Script=Khmer}\\p{Script=Myanmar}";
const WORD = `[${UNSPACED}]\\p{M}*|(?:(?![${UNSPACED}])[\\p{L}\\p{N}\\p{M}])+`;
const WORDS = new RegExp(WORD, "gu"), PARTS = new RegExp(`(${WORD})`, "u");
const wordsOf = text => text.toLowerCase().match(WORDS) ?? [];
const gapOf = row => (row[5][arms.indexOf(ask.mine.value)] - row[5][arms.indexOf(ask.theirs.value)]) / 10;
const signed = number => (number > 0 ? "+" : number < 0 ? "\u2212" : "") + Math.abs(number).toFixed(1);
const lengthOf = row => wordsOf(row[2]).length;

// each word of a hypothesis is marked where the reference has no more of it
const marked = (text, reference) => {
  const left = new Map();
  for (const word of wordsOf(reference)) left.set(word, (left.get(word) ?? 0) + 1);
  const made = document.createDocumentFragment();
  for (const part of text.split(PARTS)) {
    const word = part.toLowerCase();
    if (!/[\p{L}\p{N}]/u.test(part)) made.append(part);
    else if (left.get(word)) { left.set(word, left.get(word) - 1); made.append(part); }
    else { const mark = document.createElement("i"); mark.className = "wrong"; mark.append(part); made.append(mark); }
  }
  return made;
};

// each word of the reference that no hypothesis has is marked
const missed = (reference, written) => {
  const there = new Set(written.flatMap(wordsOf)), made = document.createDocumentFragment();
  for (const part of reference.split(PARTS)) {
    if (!/[\p{L}\p{N}]/u.test(part) || there.has(part.toLowerCase())) made.append(part);
    else { const mark = document.createElement("em"); mark.className = "missed"; mark.append(part); made.append(mark); }
  }
  return made;
};

const line = (body, name, content, code) => {
  const row = body.insertRow(), head = document.createElement("th"), cell = document.createElement("td");
  head.scope = "row";
  head.append(name);
  cell.lang = code;
  cell.dir = "auto";
  cell.append(content);
  row.append(head, cell);
};

const tableOf = row => {
  const [number, source, reference, rare, written, scores] = row;
  const table = document.createElement("table");
  table.className = "pair";
  table.createCaption().append(`Line ${number}: ${ask.mine.value} \u2212 ${ask.theirs.value} is ${signed(gapOf(row))}` + (rare ? `; rare words: ${rare}` : ""));
  const body = table.createTBody();
  line(body, "source", source, LANGUAGES[0]);
  line(body, "reference", missed(reference, written), LANGUAGES[1]);
  arms.forEach((arm, place) => line(body, `${arm} ${(scores[place] / 10).toFixed(1)}`, marked(written[place], reference), LANGUAGES[1]));
  return table;
};

const SHOWN = {all: () => true, better: row => gapOf(row) > 0, worse: row => gapOf(row) < 0, equal: row => gapOf(row) === 0};
const ORDER = {
  gap: (a, b) => gapOf(b) - gapOf(a) || a[0] - b[0],
  loss: (a, b) => gapOf(a) - gapOf(b) || a[0] - b[0],
  line: (a, b) => a[0] - b[0],
  length: (a, b) => lengthOf(b) - lengthOf(a) || a[0] - b[0],
  rare: (a, b) => b[3] - a[3] || a[0] - b[0],
};

const show = () => {
  document.getElementById("rows").replaceChildren(...found.slice(0, shown).map(tableOf));
  document.getElementById("more").hidden = shown >= found.length;
};

const look = () => {
  const wanted = ask.search.value.trim().toLowerCase();
  const has = row => !wanted || [row[1], row[2], ...row[4]].some(text => text.toLowerCase().includes(wanted));
  const number = (name, otherwise) => ask[name].value === "" ? otherwise : Number(ask[name].value);
  const least = number("least", 0), shortest = number("shortest", 0), longest = number("longest", Infinity), rare = number("rare", 0);
  const within = row => Math.abs(gapOf(row)) >= least && lengthOf(row) >= shortest && lengthOf(row) <= longest && row[3] >= rare;
  found = rows.filter(row => has(row) && within(row) && SHOWN[ask.show.value](row)).sort(ORDER[ask.sort.value]);
  shown = PAGE;
  const count = kind => rows.filter(SHOWN[kind]).length;
  document.getElementById("counts").textContent = `${found.length} of ${rows.length} sentences. Of all, ${ask.mine.value} is better than `
    + `${ask.theirs.value} in ${count("better")}, worse in ${count("worse")}, equal in ${count("equal")}.`;
  show();
};

const BUCKETS = [
  ["words of the reference", lengthOf, [[0, 9, "up to 9"], [10, 19, "10 to 19"], [20, 29, "20 to 29"], [30, Infinity, "30 and more"]]],
  ["rare words", row => row[3], [[0, 0, "none"], [1, 1, "1"], [2, 2, "2"], [3, Infinity, "3 and more"]]],
];
const buckets = () => {
  const table = document.createElement("table"), head = table.createTHead().insertRow();
  table.createCaption().append("Mean sentence-level chrF.");
  for (const name of ["", "sentences", ...arms]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    if (name) cell.className = "n";
    cell.append(name);
    head.append(cell);
  }
  const body = table.createTBody();
  for (const [what, of, ranges] of BUCKETS) for (const [low, high, called] of ranges) {
    const some = rows.filter(row => of(row) >= low && of(row) <= high);
    if (!some.length) continue;
    const row = body.insertRow(), name = document.createElement("th");
    name.scope = "row";
    name.append(`${what}: ${called}`);
    row.append(name);
    for (const number of [some.length, ...arms.map((arm, place) => (some.reduce((sum, each) => sum + each[5][place], 0) / some.length / 10).toFixed(1))]) {
      const cell = row.insertCell();
      cell.className = "n";
      cell.append(String(number));
    }
  }
  document.getElementById("buckets").append(table);
};

for (const each of Object.values(ask)) each.addEventListener("input", look);
document.querySelector("form").addEventListener("submit", event => event.preventDefault());
document.getElementById("more").addEventListener("click", () => { shown += PAGE; show(); });
buckets();
look();

// a row is [line, source, reference, rare words, what the arms wrote, ten times their chrF]
const lengthOf = row => wordsOf(row[2]).length;
for (const row of rows) row[5] = row[5].map(score => score / 10);
const scoresIn = row => row[5];
const COLUMNS = [
  {name: "source", texts: row => [row[1]], searched: true},
  {name: "reference", texts: row => [row[2]], searched: true},
  ...arms.map((name, arm) => ({name, arm, texts: row => placesOf(arm).map(at => row[4][at]), searched: true})),
  {name: "rare words", texts: row => [String(row[3])]},
];

// each word of a hypothesis is marked where the reference has no more of it
const marked = (text, reference) => {
  const left = new Map();
  for (const word of wordsOf(reference)) left.set(word, (left.get(word) ?? 0) + 1);
  const all = document.createDocumentFragment();
  for (const part of text.split(PARTS)) {
    const word = plain(part);
    if (!/[\p{L}\p{N}]/u.test(part)) all.append(part);
    else if (left.get(word)) { left.set(word, left.get(word) - 1); all.append(part); }
    else all.append(made("i", part, {className: "wrong"}));
  }
  return all;
};

// each word of the reference that no hypothesis has is marked
const missed = (reference, outputs) => {
  const there = new Set(outputs.flatMap(wordsOf)), all = document.createDocumentFragment();
  for (const part of reference.split(PARTS)) {
    if (!/[\p{L}\p{N}]/u.test(part) || there.has(plain(part))) all.append(part);
    else all.append(made("em", part, {className: "missed"}));
  }
  return all;
};

const tableOf = row => {
  const [, source, reference, rare, outputs, scores] = row;
  const table = made("table", [], {className: "pair"});
  table.createCaption().append(linkTo(row), `: ${ask.mine.value} \u2212 ${ask.theirs.value} is ${signed(gapOf(row))}` + (rare ? `; rare words: ${rare}` : ""));
  const body = table.createTBody();
  line(body, "source", source, LANGUAGES[0]);
  line(body, "reference", missed(reference, arms.flatMap((_, arm) => placesOf(arm)).map(at => outputs[at])), LANGUAGES[1]);
  arms.forEach((name, arm) => {
    for (const {at, of} of answersOf(row, arm, outputs)) line(body, [`${name} ${scores[at].toFixed(1)}`, ...of], marked(outputs[at], reference), LANGUAGES[1]);
  });
  return table;
};

ORDER.rare = (a, b) => b[3] - a[3] || a[0] - b[0];
KEPT.push(row => row[3] >= number("rare", 0));

const BUCKETS = [
  ["words of the reference", lengthOf, [[0, 9, "up to 9"], [10, 19, "10 to 19"], [20, 29, "20 to 29"], [30, Infinity, "30 and more"]]],
  ["rare words", row => row[3], [[0, 0, "none"], [1, 1, "1"], [2, 2, "2"], [3, Infinity, "3 and more"]]],
];
let bucketed = "";
const showBuckets = () => {
  if (bucketed === String(seedPlaces())) return;
  bucketed = String(seedPlaces());
  const body = [];
  for (const [what, of, ranges] of BUCKETS) for (const [low, high, called] of ranges) {
    const some = rows.filter(row => of(row) >= low && of(row) <= high);
    const scores = arms.map((_, arm) => mean(some.map(row => mean(placesOf(arm).map(at => row[5][at])))).toFixed(1));
    if (some.length) body.push([`${what}: ${called}`, some.length, ...scores]);
  }
  document.getElementById("buckets").replaceChildren(numbers(["", "sentences", ...arms], body, "Mean sentence-level chrF."));
};
CHANGED.push(showBuckets);

// n-grams that one of the two arms gets right more often, each way
let counted = "";
const showNgrams = () => {
  const pair = [placeOf("mine"), placeOf("theirs")], box = document.getElementById("ngrams");
  const chosen = ask.seed?.value ? seeds.indexOf(Number(ask.seed.value)) : seeds.length; // behind the seeds stand all together
  if (!box || counted === String([pair, chosen])) return;
  counted = String([pair, chosen]);
  box.replaceChildren(...[pair, [...pair].reverse()].filter(([one, other]) => one !== other).map(([one, other]) => {
    const body = more.ngrams[chosen][one][other].map(([gram, ...counts]) => [made("span", gram, {lang: LANGUAGES[1]}), ...counts]);
    return numbers(["words", arms[one], arms[other]], body, `${arms[one]} more often than ${arms[other]}`);
  }));
};
CHANGED.push(showNgrams);

// a row is [line, texts, what is right, what the arms answered, their scores]; what these are hangs on the kind of answers
const right = (row, at) => row[4][at] >= more.best;
const lengthOf = row => KIND.words ? KIND.words(row) : wordsOf(row[1][0]).length;
const scoresIn = row => row[4];
const code = at => LANGUAGES[Math.min(at, LANGUAGES.length - 1)];
// of numbers none is right, but some are near
const PLACES = more.best ? 1 : 2;
const scored = (row, at) => `${armOf(at)} ${written(row[4][at], KIND.whole && more.best ? 0 : PLACES)}`;
const mark = (text, wrong) => wrong && more.best ? made("mark", text) : text;

// characters of a passage, since Python counts those, and a string of this language counts halves of some
const characters = more.passages?.map(passage => [...passage]);
const AROUND = 160;
const inPassage = (passage, span) => {
  const text = characters[passage], [start, end] = span;
  const cut = (from, to) => text.slice(from, to).join("");
  const before = (start > AROUND ? "\u2026 " : "") + cut(Math.max(0, start - AROUND), start);
  const after = cut(end, end + AROUND) + (end + AROUND < text.length ? " \u2026" : "");
  return [before, made("mark", cut(start, end)), after];
};

// columns that the search looks in, and columns that are only saved; of an arm they have a text for each seed that is asked for
const given = (name, texts) => ({name, texts, searched: true});
const kept = (name, text) => ({name, texts: row => [text(row)]});
const ofArms = (text, name = arm => arm) => arms.map((arm, number) => ({name: name(arm), arm: number, texts: row => placesOf(number).map(at => text(row[3][at]))}));
const givenOfArms = text => ofArms(text).map(column => ({...column, searched: true}));
// what is shown of each arm: its head, and where its answer is in a row
const eachArm = (row, show) => arms.forEach((_, number) => answersOf(row, number, row[3]).forEach(({at, of}) => show([scored(row, at), ...of], at)));

const KINDS = {
  labels: {
    whole: true,
    columns: [
      given("text", row => [row[1][0]]),
      ...(rows.some(row => row[1].length > 1) ? [given("second text", row => [row[1][1] ?? ""])] : []),
      given("right", row => [row[2]]),
      ...givenOfArms(label => label),
    ],
    fill: (body, row) => {
      row[1].forEach((text, at) => line(body, at ? "second text" : "text", text, code(0)));
      line(body, "right", row[2], "");
      eachArm(row, (head, at) => line(body, head, mark(row[3][at], !right(row, at)), ""));
    },
    pairs: (row, at) => [[row[2], row[3][at]]],
  },
  tags: {
    words: row => row[1].length,
    columns: [
      given("words", row => [row[1].join(" "), row[1].join("")]), // with blanks, and as scripts without them are written
      kept("right", row => row[2]),
      ...ofArms(tags => tags),
    ],
    fill: (body, row) => {
      const wide = (name, cells) => {
        const cellsOf = body.insertRow();
        cellsOf.append(made("th", name, {scope: "row"}), ...cells);
      };
      const truth = row[2].split(" ");
      wide("words", row[1].map(word => made("td", word, {lang: code(0), dir: "auto"})));
      wide("right", truth.map(tag => made("td", tag)));
      eachArm(row, (head, at) => wide(head, row[3][at].split(" ").map((tag, i) => made("td", tag === truth[i] ? "" : mark(tag, true)))));
    },
    pairs: (row, at) => { const given = row[3][at].split(" "); return row[2].split(" ").map((tag, i) => [tag, given[i]]); },
    wide: true,
  },
  spans: {
    columns: [
      given("question", row => [row[1][0]]),
      given("passage", row => [more.passages[row[1][1]]]),
      given("right", row => [row[2][0].join("; ")]),
      ...givenOfArms(([, text]) => text),
    ],
    fill: (body, row) => {
      const [[question, passage], [answers, span]] = [row[1], row[2]];
      line(body, "question", question, code(0));
      line(body, "right", span ? inPassage(passage, span) : `${answers[0]} (not in the passage)`, code(0));
      if (answers.length > 1) line(body, "also right", answers.slice(1).join("; "), code(0));
      eachArm(row, (head, at) => {
        const [given, text] = row[3][at];
        line(body, head, text ? inPassage(passage, given) : "nothing", code(0));
      });
    },
  },
  ranks: {
    columns: [
      given("query", row => [row[1][0]]),
      {...given("documents", row => row[2][1].map(([text]) => text)), saved: row => row[2][1].map(([text, grade]) => `${text} (grade ${grade})`).join("; ")},
      ...ofArms(([rank]) => String(rank), arm => `rank of a best one, ${arm}`),
    ],
    fill: (body, row) => {
      const [count, documents] = row[2], highest = Math.max(...documents.map(([, grade]) => grade));
      line(body, `query, ${count} documents`, row[1][0], code(0));
      eachArm(row, (head, at) => {
        const [rank, first] = row[3][at];
        const list = made("ol", first.map(i => made("li", [`(grade ${documents[i][1]}) `, mark(documents[i][0], documents[i][1] < highest || !highest)])));
        line(body, highest ? [...head, made("small", `a best one is at rank ${rank}`)] : head, list, code(0));
      });
      line(body, "a best one", highest ? documents.find(([, grade]) => grade === highest)[0] : "no document is relevant", code(0));
    },
  },
  neighbours: {
    whole: true,
    columns: [
      given("sentence", row => [row[1][0]]),
      given("translation", row => [row[2]]),
      ...givenOfArms(([text]) => text),
    ],
    fill: (body, row) => {
      line(body, "sentence", row[1][0], code(0));
      line(body, "translation", row[2], code(1));
      eachArm(row, (head, at) => {
        const [text, similarity] = row[3][at];
        line(body, [...head, made("small", `similarity ${similarity.toFixed(3)}`)], mark(text || "nothing", !right(row, at)), code(1));
      });
    },
  },
};
const KIND = KINDS[more.kind], COLUMNS = KIND.columns;

const tableOf = row => {
  const table = made("table", [], {className: KIND.wide ? "" : "pair"});
  table.createCaption().append(linkTo(row), `: ${ask.mine.value} \u2212 ${ask.theirs.value} is ${signed(gapOf(row), PLACES)}`);
  KIND.fill(table.createTBody(), row);
  table.caption.dir = "ltr";
  return KIND.wide ? made("div", table, {className: "wide", dir: RIGHT_TO_LEFT ? "rtl" : "ltr"}) : table;
};

SHOWN.right = row => placesOf(placeOf("mine")).every(at => right(row, at));
SHOWN.wrong = row => !SHOWN.right(row);
SHOWN.none = row => !arms.some((_, arm) => placesOf(arm).some(at => right(row, at)));

if (ask.truth) {
  const labels = [...ask.truth.options].slice(1).map(option => option.value);
  KEPT.push(row => {
    if (!ask.truth.value && !ask.answer.value) return true;
    const fits = (wanted, label) => !wanted || wanted === label;
    return placesOf(placeOf("mine")).some(at => KIND.pairs(row, at).some(([truth, given]) => fits(ask.truth.value, truth) && fits(ask.answer.value, given)));
  });
  const cell = (truth, given, content) => {
    const button = made("button", content, {type: "button", title: `show right label ${truth}, answer ${given || "any"}`});
    button.addEventListener("click", () => {
      ask.truth.value = truth;
      ask.answer.value = given;
      ask.show.value = "all";
      ask.truth.dispatchEvent(new Event("input"));
      scrollTo({top: 0});
    });
    return button;
  };
  const counted = arm => {
    const counts = new Map(labels.map(truth => [truth, new Map(labels.map(given => [given, 0]))]));
    for (const at of placesOf(arm)) for (const row of rows) for (const [truth, given] of KIND.pairs(row, at)) {
      const of = counts.get(truth);
      if (of) of.set(given, (of.get(given) ?? 0) + 1);
    }
    return counts;
  };
  const total = of => [...of.values()].reduce((sum, count) => sum + count, 0);
  const share = (counts, label) => (100 * counts.get(label).get(label) / total(counts.get(label))).toFixed(1);
  let all, there, drawn = "", drawnSeeds = "";
  CHANGED.push(() => {
    if (String(seedPlaces()) === drawnSeeds) return;
    drawnSeeds = String(seedPlaces());
    all = arms.map((_, arm) => counted(arm));
    there = labels.filter(label => total(all[0].get(label)));
    const shares = there.map(label => [cell(label, "", label), total(all[0].get(label)) / seedPlaces().length, ...all.map(counts => share(counts, label))]);
    document.getElementById("by-label").replaceChildren(numbers(["right label", "number", ...arms], shares, "Right answers to each label, in per cent."));
  }, () => {
    const arm = placeOf("mine");
    if (String([arm, drawnSeeds]) === drawn) return;
    drawn = String([arm, drawnSeeds]);
    const body = there.map(truth => [truth, ...labels.map(given => {
      const count = all[arm].get(truth).get(given);
      return count ? cell(truth, given, String(count)) : "";
    })]);
    const together = seedPlaces().length > 1 ? " with all seeds together" : "";
    document.getElementById("confusion").replaceChildren(
      numbers(["right label", ...labels], body, `Answers of ${arms[arm]} to each right label${together}; a number shows its ${INPUTS}.`));
  });
}

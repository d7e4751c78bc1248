// What a stranger may not know is explained in a box, by mouse, keyboard or finger: words that are whole heads of tables, and in each
// part of the page the first use of a word in the page's own text.
const MEANINGS = {{ meanings|tojson }};
{% raw %}
const meaningOf = word => MEANINGS[word.toLowerCase()] ?? MEANINGS[word.toLowerCase().replace(/s$/, "")] ?? MEANINGS[`${word.toLowerCase()}s`];
const explain = (element, meaning) => {
  element.classList.add("explained");
  element.setAttribute("aria-description", meaning);
  element.addEventListener("click", () => showMeaning(element)); // of its own, or some phones do not tell of a finger
};
for (const head of document.querySelectorAll("thead th")) {
  const meaning = meaningOf(head.textContent.trim()), inner = head.querySelector("button");
  if (!meaning) continue;
  if (!inner) head.tabIndex = 0;
  explain(inner ?? head, meaning);
}
// what is somebody else's text, or does something when it is clicked, or names a row
const NOT_IN = "[lang]:not(html), pre, code, svg, a, button, summary, select, label, nav, tbody, tfoot, thead, h1, script, style, #rows, #counts, .source, .signatures";
const IN_TEXT = Object.keys(MEANINGS).filter(word => word !== "look"); // which is a verb, too
const TERM = new RegExp(`(?<![\\p{L}\\p{N}_-])(?:${IN_TEXT.map(word => `${word.replace(/s$/, "")}s?`).join("|")})(?![\\p{L}\\p{N}_-])`, "iu");
const firstUses = () => {
  const texts = document.createTreeWalker(document.querySelector("main"), NodeFilter.SHOW_TEXT | NodeFilter.SHOW_ELEMENT), found = [];
  let used = new Map(); // what is folded has words of its own, since it may stay folded
  while (texts.nextNode()) {
    const node = texts.currentNode;
    if (node.nodeType === Node.ELEMENT_NODE) {
      if (node.matches("h2")) used = new Map();
      continue;
    }
    if (node.parentElement.closest(NOT_IN)) continue;
    const fold = node.parentElement.closest("details");
    if (!used.has(fold)) used.set(fold, new Set());
    for (let rest = node.data, start = 0, match; (match = rest.match(TERM)); ) {
      const meaning = meaningOf(match[0]), from = start + match.index;
      if (!used.get(fold).has(meaning)) found.push([node, from, match[0], meaning]);
      used.get(fold).add(meaning);
      start = from + match[0].length;
      rest = node.data.slice(start);
    }
  }
  return found;
};
for (const [node, from, word, meaning] of IN_TEXT.length ? firstUses().reverse() : []) { // the last first, as a cut moves what follows
  const rest = node.splitText(from), term = document.createElement("dfn");
  rest.splitText(word.length);
  term.tabIndex = 0;
  explain(term, meaning);
  rest.replaceWith(term);
  term.append(rest);
}
const box = document.createElement("div");
box.id = "meaning";
box.setAttribute("role", "tooltip");
box.hidden = true;
document.body.append(box);
const showMeaning = element => {
  box.textContent = element.getAttribute("aria-description");
  box.hidden = false;
  box.style.left = 0; // as wide as it may be
  const at = element.getBoundingClientRect(), below = at.bottom;
  box.style.left = `${scrollX + Math.max(8, Math.min(at.left, document.documentElement.clientWidth - box.offsetWidth - 8))}px`;
  box.style.top = `${scrollY + (below + box.offsetHeight < innerHeight ? below : Math.max(8, at.top - box.offsetHeight))}px`;
};
const hideMeaning = () => { box.hidden = true; };
document.addEventListener("focusin", ({target}) => { if (target.matches(".explained")) showMeaning(target); });
// a mouse hides what it leaves, and nothing else: browsers tell of a resting mouse when the page moves or a finger taps
document.addEventListener("pointerover", ({target, pointerType}) => {
  const element = pointerType === "mouse" && target.closest?.(".explained");
  if (element) showMeaning(element);
});
document.addEventListener("pointerout", ({target, relatedTarget, pointerType}) => {
  const of = ".explained, #meaning";
  if (pointerType === "mouse" && target.closest?.(of) && !relatedTarget?.closest?.(of)) hideMeaning();
});
document.addEventListener("click", ({target}) => { if (!target.closest?.(".explained, #meaning")) hideMeaning(); });
addEventListener("focusout", hideMeaning);
addEventListener("keydown", event => { if (event.key === "Escape") hideMeaning(); });
{% endraw %}

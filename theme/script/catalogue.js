// The front page with scripts: search, filters and order over all works, kept in the address so that Back works.
// The plain list of the newest works stands in the page already; the data is fetched when somebody asks for more.

import { card, thousands } from "./card.js";
import { address, read, select } from "./query.js";
import { breathe, load, sorted } from "./rows.js";

/** Drawers added at once. */
const BATCH = 60;
const TAGS_SHOWN_MAX = 200;

const form = /** @type {HTMLFormElement} */ (document.getElementById("filters"));
const list = /** @type {HTMLUListElement} */ (document.getElementById("works"));
const count = /** @type {HTMLElement} */ (document.getElementById("count"));
const none = /** @type {HTMLElement} */ (document.getElementById("none"));
const clear = /** @type {HTMLButtonElement} */ (document.getElementById("clear"));
const more = /** @type {HTMLButtonElement} */ (document.getElementById("more"));
const tags = /** @type {HTMLSelectElement} */ (document.getElementById("tag"));
const classes = [...form.querySelectorAll("input[name=size]")].map(input => Number(/** @type {HTMLInputElement} */ (input).value) || 0);
const total = Number(count.dataset.count);

/** The works asked for, and how many of them have a drawer. @type {import("./rows.js").Row[]} */
let found = [];
let shown = list.children.length;
let fromData = false;
/** Counts the questions, so that a slow answer to an old one is dropped. */
let asked = 0;

const asksNothing = (/** @type {import("./query.js").Query} */ query) => address(query) === "/";

/** Puts a query into the controls. @param {import("./query.js").Query} query */
function fill(query) {
  if (query.tag && ![...tags.options].some(option => option.value === query.tag)) tags.add(new Option(query.tag, query.tag));
  for (const [name, value] of Object.entries(query)) {
    const control = form.elements.namedItem(name);
    if (control instanceof RadioNodeList) control.value = "";
    if (control instanceof RadioNodeList || control instanceof HTMLInputElement) control.value = value;
    if (control instanceof HTMLSelectElement) control.value = [...control.options].some(o => o.value === value) ? value : "";
  }
}

/**
 * Answers the query in the controls.
 * @param {number} [least] how many drawers to open at least
 */
async function answer(least = BATCH) {
  const query = read(new FormData(form)), question = ++asked;
  clear.disabled = asksNothing(query);
  try {
    const rows = await sorted(/** @type {import("./rows.js").Order} */ (query.sort));
    if (question !== asked) return;
    await breathe();
    found = select(rows, query, Math.max(...classes));
    fromData = true;
    shown = 0;
    list.replaceChildren();
    say();
    await open(least, question);
    offerTags();
  } catch {
    if (question === asked) count.textContent = "The list of all works did not arrive. Check your connection and try once more.";
  }
}

/** Waits until the drawers so far are laid out; a hidden page draws nothing. */
function drawn() {
  return new Promise(resolve => {
    requestAnimationFrame(() => setTimeout(resolve));
    setTimeout(resolve, 100);
  });
}

/** Opens more drawers, a few at a time. @param {number} howMany @param {number} question */
async function open(howMany, question) {
  const end = Math.min(found.length, shown + howMany);
  while (shown < end && question === asked) {
    const few = found.slice(shown, Math.min(end, shown + 12));
    list.append(...few.map(card));
    shown += few.length;
    await drawn();
  }
  if (question === asked) more.hidden = shown >= found.length;
}

function say() {
  const all = found.length === total;
  count.textContent = found.length === 1 ? "One work" : `${thousands(found.length)} work${all ? "s" : `s of ${thousands(total)}`}`;
  none.hidden = found.length > 0;
  more.hidden = true;
}

let tagsOffered = false;

/** Replaces the common tags of the page by those of all works. */
async function offerTags() {
  if (tagsOffered) return;
  tagsOffered = true;
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const row of await load()) for (const tag of row.tags) counts.set(tag, (counts.get(tag) ?? 0) + 1);
  await breathe();
  const chosen = tags.value;
  const common = [...counts].sort((a, b) => b[1] - a[1]).slice(0, TAGS_SHOWN_MAX);
  if (chosen && !common.some(([tag]) => tag === chosen)) common.push([chosen, counts.get(chosen) ?? 0]);
  common.sort((a, b) => a[0] < b[0] ? -1 : 1);
  tags.replaceChildren(tags.options[0], ...common.map(([tag, n]) => new Option(`${tag} (${n})`, tag)));
  tags.value = chosen;
}

/** Writes the query into the address. @param {boolean} step whether Back should return to the one before */
function note(step) {
  const to = address(read(new FormData(form)));
  if (step) history.pushState(null, "", to);
  else history.replaceState(null, "", to);
}

/** @param {boolean} step */
function ask(step) {
  note(step);
  answer();
}

// On narrow windows all but the search is folded away.
const narrow = document.getElementById("narrow");
function unfold(on = !form.classList.contains("open")) {
  form.classList.toggle("open", on);
  narrow?.setAttribute("aria-expanded", String(on));
}
narrow?.addEventListener("click", () => unfold());

let typing = false;
form.addEventListener("input", event => {
  if (!(event.target instanceof HTMLInputElement && event.target.type === "search")) return;
  ask(!typing); // one step back for a whole word, not for each letter
  typing = true;
});
form.addEventListener("change", event => {
  const typed = event.target instanceof HTMLInputElement && event.target.type === "search";
  typing = false;
  if (!typed) ask(true);
});
form.addEventListener("submit", event => event.preventDefault());
form.addEventListener("reset", () => setTimeout(() => ask(true)));
document.getElementById("none-clear")?.addEventListener("click", () => {
  form.reset();
  document.getElementById("q")?.focus();
});

// Whoever reaches for the controls will need the data.
const prepare = () => { load().catch(() => {}); };
form.addEventListener("focusin", prepare, { once: true });
form.addEventListener("pointerover", prepare, { once: true });

more.addEventListener("click", async () => {
  const first = shown;
  if (!fromData) await answer(shown + BATCH);
  else await open(BATCH, asked);
  list.children[first]?.querySelector("a")?.focus({ preventScroll: true });
});

addEventListener("popstate", () => {
  fill(read(new URLSearchParams(location.search)));
  answer();
});

// Coming back from a work: as many drawers as before, at the same place.
addEventListener("pagehide", () => history.replaceState({ shown, y: scrollY }, ""));

async function begin() {
  const query = read(new URLSearchParams(location.search)), before = history.state?.shown ?? 0;
  more.hidden = shown >= total;
  fill(query);
  if (!asksNothing({ ...query, q: "" })) unfold(true);
  if (asksNothing(query) && before <= shown) return;
  history.scrollRestoration = "manual";
  await answer(Math.max(BATCH, before));
  scrollTo(0, history.state?.y ?? 0);
  history.scrollRestoration = "auto";
}

begin();

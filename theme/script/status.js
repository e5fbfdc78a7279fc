// The status page of Python: reads what the runner keeps of its suite and draws it. Without this script, or without
// the file, the page says where the file is.

/** @typedef {{build: string, policy: string, kernel: string}} Subject what a run proves something about */
/** @typedef {Subject & {at: number, passed: boolean, attacks: number, failures: string[], reporters: string[]}} Run */
/** @typedef {{state: "open" | "closed", why: string | null, now: Subject, runs: Run[]}} Status newest run first */

const PLACE = "/data/python-status.json";
/** Runs in the picture. */
const SHOWN = 60;

/**
 * @param {string} tag @param {Record<string, string>} attributes @param {(Node | string)[]} inside
 * @returns {Element}
 */
function make(tag, attributes, ...inside) {
  const drawn = ["svg", "rect", "title"].includes(tag);
  const element = drawn ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...inside);
  return element;
}

/** @param {number} at seconds since 1970 */
const moment = at => new Date(at * 1000).toISOString().replace("T", " ").slice(0, 16) + " UTC";
/** @param {string} digest */
const brief = digest => make("code", { title: digest }, digest.slice(0, 12));

/** What happened in a run, in words. @param {Run} run */
const sentence = run => run.passed ? `${run.attacks} of ${run.attacks} attacks blocked, in both modes`
  : run.attacks === 0 ? "closed while in service" : `${run.failures.length} of ${run.attacks} attacks not shown to be blocked`;

/** One bar a run, oldest first: a full one passed, a short one with a gap failed. @param {Run[]} runs */
function picture(runs) {
  const bars = runs.slice(0, SHOWN).reverse().flatMap((run, n) => {
    const x = String(n * 10), label = make("title", {}, `${moment(run.at)}: ${sentence(run)}`);
    return run.passed ? [make("rect", { class: "passed", x, y: "0", width: "7", height: "40" }, label)]
      : [make("rect", { class: "failed", x, y: "26", width: "7", height: "14" }, label),
        make("rect", { class: "failed", x, y: "0", width: "7", height: "7" })];
  });
  const width = Math.max(1, Math.min(runs.length, SHOWN)) * 10 - 3;
  const passed = runs.filter(run => run.passed).length;
  const words = `${passed} of the ${runs.length} runs passed; the newest is at the right`;
  return make("svg", { class: "runs", viewBox: `0 0 ${width} 40`, width: String(width), height: "40", role: "img", "aria-label": words }, ...bars);
}

/** @param {Run} run */
function row(run) {
  const failures = run.failures.map(failure => make("li", {}, failure));
  const credit = run.reporters.length ? [make("p", {}, `Reported by ${[...new Set(run.reporters)].join(", ")}.`)] : [];
  return make("tr", {},
    make("td", {}, make("time", { datetime: new Date(run.at * 1000).toISOString() }, moment(run.at))),
    make("td", {}, make("strong", {}, run.passed ? "Passed" : "Failed"), ` ${sentence(run)}`,
      ...(failures.length ? [make("ul", {}, ...failures)] : []), ...credit),
    make("td", {}, "build ", brief(run.build), make("br", {}), "policy ", brief(run.policy), make("br", {}), `Linux ${run.kernel.split(" ")[0]}`));
}

/** @param {Status} status */
function draw(status) {
  const same = status.runs.filter(run => run.build === status.now.build && run.policy === status.now.policy && run.kernel === status.now.kernel);
  const open = status.state === "open";
  const head = make("div", { class: `gate ${status.state}` },
    make("p", {}, make("strong", {}, open ? "Python is open." : "Python is closed."), " ",
      open ? `The last run for what is in service: ${same[0] ? sentence(same[0]) : ""}.` : `Why: ${status.why ?? "no reason is known"}.`),
    picture(status.runs));
  const columns = make("tr", {}, ...["When", "What", "For which"].map(name => make("th", { scope: "col" }, name)));
  const table = make("table", {}, make("thead", {}, columns), make("tbody", {}, ...status.runs.map(row)));
  return [head, make("div", { class: "table", role: "region", "aria-label": "Every run", tabindex: "0" }, table)];
}

/** Fills the page, or says why it stays empty. @param {HTMLElement} place */
async function show(place) {
  try {
    const answer = await fetch(PLACE, { cache: "no-store", credentials: "omit" });
    if (answer.status === 404) throw new Error("No run is on record here: the runner has not been in service yet. Python is closed.");
    if (!answer.ok) throw new Error(`The record cannot be read just now (${answer.status}).`);
    place.replaceChildren(...draw(await answer.json()));
  } catch (error) {
    const unreachable = error instanceof TypeError;
    place.replaceChildren(make("p", {}, unreachable ? "The server does not answer. Try again later." : error instanceof Error ? error.message : String(error)));
  }
}

const place = document.getElementById("python-status");
if (place) void show(place);

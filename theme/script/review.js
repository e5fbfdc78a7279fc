// The review desk: what waits, one version with everything there is to know about it, and the decision.

import { Refused, ask } from "./ask.js";
import { element, findingList } from "./findings.js";
import { showKey, words } from "./key-panel.js";
import { changes, source } from "./source.js";

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const [desk, queue, version, news] = ["desk", "queue", "version", "review-news"].map(find);
const form = /** @type {HTMLFormElement} */ (find("decision"));
const down = /** @type {HTMLFormElement} */ (find("take-down"));

/** @type {import("./key-panel.js").Known | null} */
let known = null;
let open = 0;

/** @param {string} text @param {boolean} [loud] */
function tell(text, loud = false) {
  news.textContent = text;
  news.classList.toggle("loud", loud);
}

/** @param {string} method @param {string} path @param {unknown} [body] */
async function request(method, path, body) {
  if (!known) throw new Error("There is no key.");
  try {
    return await ask(known.member, method, path, body);
  } catch (error) {
    if (!(error instanceof Refused && error.status === 403)) throw error;
    // The role was taken away while the page was open: what is on it is not for this member any more.
    desk.hidden = true;
    throw new Error(`${known.member.pseudonym} is not a moderator any more. Nothing was decided, and what was shown here is put away.`);
  }
}

/** @param {number} seconds */
function age(seconds) {
  if (seconds < 60) return "just now";
  const units = /** @type {const} */ ([["day", 86400], ["hour", 3600], ["minute", 60]]);
  const [unit, length] = units.find(([, length]) => seconds >= length) ?? ["minute", 60];
  return new Intl.RelativeTimeFormat("en").format(-Math.floor(seconds / length), unit);
}

async function loadQueue() {
  const { pending, now } = await request("GET", "review");
  find("count").textContent = pending.length === 1 ? "One version waits." : pending.length ? `${pending.length} versions wait.` : "Nothing waits.";
  queue.replaceChildren(...pending.map((/** @type {any} */ row) => {
    const item = element("li");
    const link = /** @type {HTMLAnchorElement} */ (element("a", row.title));
    link.href = `#version=${row.id}`;
    const notes = row.notes ? `, ${row.notes} note${row.notes === 1 ? "" : "s"}` : "";
    item.append(link, element("span", ` ${row.path} sent ${age(now - row.received)}${notes}`, "quiet"));
    const refused = refusals(row.saves.refused);
    if (refused) item.append(element("span", ` Saves of the version before it were refused: ${refused}.`));
    return item;
  }));
}

const REASONS = { rate: "too often", size: "too large", budget: "day is full", other: "other" };

/** What was refused, in words. @param {Record<keyof REASONS, number>} refused */
function refusals(refused) {
  const reasons = /** @type {(keyof REASONS)[]} */ (Object.keys(REASONS)).filter(why => refused[why]);
  return reasons.map(why => `${refused[why].toLocaleString("en")} ${REASONS[why]}`).join(", ");
}

async function loadSaves() {
  const { since, works } = await request("GET", "review/saves");
  const from = new Date(since * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  find("saves-since").textContent = works.length ? `Counted for works, not for players, since the server started on ${from}.` : `Nothing was saved since the server started on ${from}.`;
  find("saves-table").hidden = !works.length;
  find("saves").replaceChildren(...works.map((/** @type {any} */ { work, saved }) => {
    const row = element("tr"), name = element("td"), link = /** @type {HTMLAnchorElement} */ (element("a", work));
    link.href = `/${work}/`;
    name.append(link);
    const counts = [...Object.keys(REASONS).map(why => saved.refused[why]), saved.saves, saved.bytes];
    row.append(name, ...counts.map(count => element("td", count.toLocaleString("en"))));
    return row;
  }));
}

async function loadAudit() {
  const { rows, intact } = await request("GET", "audit");
  find("chain").textContent = intact ? "The chain of digests holds." : "The chain of digests is broken: somebody changed a row.";
  find("audit").replaceChildren(...rows.map((/** @type {any} */ row) => {
    const line = element("tr");
    const when = new Date(row.at * 1000).toISOString().slice(0, 16).replace("T", " ");
    const trees = [row.tree_before, row.tree_after].filter(Boolean).map((/** @type {string} */ tree) => tree.slice(0, 8)).join(" → ");
    for (const text of [when, row.actor, row.action.replaceAll("_", " "), row.subject, detail(row.detail), trees]) line.append(element("td", text));
    return line;
  }));
}

/** What a decision was about, in words: its reason, and the beginning of the payload's digest. @param {string} text */
function detail(text) {
  try {
    const { reason, payload } = JSON.parse(text);
    if (payload) return `${reason ? `${reason} ` : ""}(payload ${payload.slice(0, 8)})`;
  } catch {
    // Not every row has both.
  }
  return text;
}

/** @param {number} id */
async function show(id) {
  open = id;
  let found;
  try {
    found = await request("GET", `review/${id}`);
  } catch (error) {
    version.hidden = true;
    return tell(words(error), true);
  }
  if (open !== id) return;
  version.hidden = false;
  find("title").textContent = found.title;
  find("facts").textContent = `${found.path} by ${found.creator}, ${found.bytes.toLocaleString("en")} bytes. ${found.served ? "An update: the version before is being served." : "A new work."}`;
  find("wants").textContent = found.capabilities.length ? `It asks for: ${found.capabilities.join(", ").replaceAll("_", " ")}.` : "It asks for nothing.";
  find("summary").textContent = found.summary;
  const shot = /** @type {HTMLImageElement} */ (find("shot"));
  shot.hidden = !found.screenshot;
  if (found.screenshot) shot.src = found.screenshot;
  const findings = found.report?.findings ?? [];
  find("findings").replaceChildren(findings.length ? findingList(findings) : element("p", "The checks found nothing."));
  find("sources").replaceChildren(...found.files.filter((/** @type {any} */ f) => f.text !== null).map((/** @type {any} */ file) => fold(file, findings, found.served)));
  form.reset();
  preview(id);
  version.focus();
}

/** A file that unfolds to its source and its changes. @param {any} file @param {any[]} findings @param {any[] | null} served */
function fold(file, findings, served) {
  const details = /** @type {HTMLDetailsElement} */ (element("details"));
  const own = findings.filter(f => f.file === file.name || (file.role === "payload" && f.file.endsWith(".html")));
  const summary = element("summary", `${file.name} (${file.bytes.toLocaleString("en")} bytes${own.length ? `, ${own.length} finding${own.length === 1 ? "" : "s"}` : ""})`);
  details.append(summary, element("p", `SHA-256 ${file.sha256}`, "quiet"));
  details.addEventListener("toggle", () => {
    if (details.childElementCount > 2) return;
    const before = served?.find(f => f.role === file.role);
    if (before) details.append(element("h3", "What changed"), changes(file.name, before.text, file.text));
    if (before) details.append(element("h3", "The whole file"));
    details.append(source(file, own));
  });
  return details;
}

/** Opens a preview and shows its address once it is rendered. @param {number} id */
async function preview(id) {
  const link = /** @type {HTMLAnchorElement} */ (find("play"));
  const state = find("play-state");
  link.hidden = true;
  state.textContent = "Preparing a preview…";
  try {
    const { token, path, expires } = await request("POST", `review/${id}/preview`);
    for (let tries = 0; open === id; tries++) {
      const job = await request("GET", `review/previews/${token}`);
      if (job.state === "failed") throw new Error(`The preview could not be made: ${job.result}`);
      if (job.state === "done") break;
      if (tries > 100) throw new Error("The preview is not there yet. Is `api work` running?");
      await new Promise(go => setTimeout(go, 200));
    }
    if (open !== id) return;
    link.href = path;
    link.hidden = false;
    state.textContent = `In a new tab, as players would see it. Its address can be used until ${new Date(expires * 1000).toLocaleTimeString("en-GB", { timeStyle: "short" })}.`;
  } catch (error) {
    if (open === id) state.textContent = words(error);
  }
}

form.addEventListener("submit", async event => {
  event.preventDefault();
  const decision = /** @type {HTMLButtonElement} */ (event.submitter)?.value;
  const reason = String(new FormData(form).get("reason")).trim();
  if (decision === "decline" && !reason) {
    tell("A rejection needs its reason: the creator reads it.", true);
    return find("reason").focus();
  }
  try {
    await request("POST", `review/${open}/decision`, { decision, reason });
    tell(decision === "approve" ? "Approved. It is on the site in a moment." : "Declined. The creator reads the reason.", true);
  } catch (error) {
    tell(words(error), true);
  }
  version.hidden = true;
  open = 0;
  history.replaceState(null, "", location.pathname);
  refresh();
  news.focus();
});

down.addEventListener("submit", async event => {
  event.preventDefault();
  const values = new FormData(down);
  const [, creator, work] = /^\/?([a-z0-9-]+)\/([a-z0-9-]+)\/?$/.exec(String(values.get("path")).trim()) ?? [];
  if (!creator) return tell("The address of a work is /creator/work/.", true);
  if (!confirm(`Take /${creator}/${work}/ down?`)) return;
  try {
    await request("POST", "takedowns", { creator, work, reason: String(values.get("reason")).trim() });
    tell(`/${creator}/${work}/ is taken down. Its address answers "gone" in a moment.`, true);
    down.reset();
    loadAudit();
  } catch (error) {
    tell(words(error), true);
  }
});

function fromAddress() {
  const id = Number(/^#version=(\d+)$/.exec(location.hash)?.[1] ?? 0);
  if (id && !desk.hidden) show(id);
}
addEventListener("hashchange", fromAddress);

function refresh() {
  Promise.all([loadQueue(), loadSaves(), loadAudit()]).catch(error => tell(words(error), true));
}
find("again").addEventListener("click", refresh);

showKey(now => {
  known = now;
  const may = now?.roles.includes("moderator") ?? false;
  desk.hidden = !may;
  tell(now && !may ? `${now.member.pseudonym} is not a moderator. The operator makes one with: api member grant ${now.member.pseudonym} moderator` : "", true);
  if (may) {
    refresh();
    fromAddress();
  }
});

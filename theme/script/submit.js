// The submit page: files are chosen or dropped, looked at, sent; then the job is followed until a person has decided.

import { ask, upload } from "./ask.js";
import { element, findingList } from "./findings.js";
import { showKey, words } from "./key-panel.js";
import { sorted } from "./parcel.js";

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));
const [drop, chosen, problems, news, following, own] = ["drop", "chosen", "problems", "send-news", "job", "own"].map(find);
const input = /** @type {HTMLInputElement} */ (find("files"));
const send = /** @type {HTMLButtonElement} */ (find("send"));
const bar = /** @type {HTMLProgressElement} */ (find("bar"));

/** How often an open job is asked for, in milliseconds. */
const ASK_EVERY = 1500;
const STATES = {
  received: "In the queue", rejected: "Rejected by the checks", pending_review: "Waiting for a moderator",
  declined: "Declined", published: "Published", withdrawn: "Withdrawn", returned: "Given back", failed: "Not finished",
};
const STAGES = { checking: "The checks read it.", playing: "It is played for a few seconds.", storing: "It passed and is put away." };

/** @type {import("./key-panel.js").Known | null} */
let known = null;
/** @type {File[]} */
let files = [];
let isSending = false;
let followed = "";

/** @param {string} text @param {boolean} [loud] */
function tell(text, loud = false) {
  news.textContent = text;
  news.classList.toggle("loud", loud);
}

/** Shows what is chosen, and what is wrong with it before anything is sent. */
async function look() {
  const parcel = await sorted(files);
  chosen.replaceChildren(...parcel.parts.map(part => {
    const item = element("li");
    item.append(element("b", part.words), " ", element("code", part.file.name), ` ${part.file.size.toLocaleString("en")} bytes`);
    return item;
  }));
  problems.replaceChildren(...parcel.problems.map(text => element("li", text)));
  problems.hidden = !parcel.problems.length || !files.length;
  send.disabled = isSending || !known || parcel.problems.length > 0;
  return parcel;
}

/** @param {Iterable<File>} added */
function add(added) {
  const names = new Set(Array.from(added, f => f.name));
  files = [...files.filter(f => !names.has(f.name)), ...added];
  look();
}

input.addEventListener("change", () => { files = []; add(input.files ?? []); });
for (const kind of ["dragover", "dragleave", "drop"]) {
  drop.addEventListener(kind, event => {
    event.preventDefault();
    drop.classList.toggle("over", kind === "dragover");
    if (kind === "drop") add(/** @type {DragEvent} */ (event).dataTransfer?.files ?? []);
  });
}

find("parcel").addEventListener("submit", async event => {
  event.preventDefault();
  const parcel = await look();
  if (!known || parcel.problems.length || isSending) return;
  const form = new FormData();
  for (const part of parcel.parts) form.append(part.field, part.file);
  isSending = send.disabled = true;
  bar.hidden = false;
  tell("Sending…");
  try {
    const { jobId } = await upload(known.member, form, share => { bar.value = share; });
    tell("It has arrived.");
    files = [];
    input.value = "";
    follow(jobId);
    following.focus();
  } catch (error) {
    tell(words(error), true);
  } finally {
    isSending = false;
    bar.hidden = true;
    look();
  }
});

/** Follows a job until it does not change any more. @param {string} id */
async function follow(id) {
  followed = id;
  history.replaceState(null, "", `#job=${id}`);
  following.hidden = false;
  while (followed === id && known) {
    let job;
    try {
      job = await ask(known.member, "GET", `jobs/${id}`);
    } catch (error) {
      following.replaceChildren(element("h2", "Your submission"), element("p", words(error), "loud"));
      if (error instanceof Error && "status" in error) return;
      await new Promise(go => setTimeout(go, ASK_EVERY * 4));
      continue;
    }
    if (followed !== id) return;
    showJob(job);
    if (!["received", "pending_review"].includes(job.state)) break;
    await new Promise(go => setTimeout(go, job.state === "received" ? ASK_EVERY : ASK_EVERY * 4));
  }
  list();
}

let shown = "";

/** @param {any} job */
function showJob(job) {
  const text = JSON.stringify(job);
  if (text === shown) return; // what is read aloud is what changed
  shown = text;
  const parts = [element("h2", job.slug || "Your submission"), element("p", STATES[/** @type {keyof STATES} */ (job.state)] ?? job.state, `state ${job.state}`)];
  if (job.state === "received") {
    const before = job.ahead === 0 ? "Yours is next." : job.ahead === 1 ? "One other is before it." : `${job.ahead} others are before it.`;
    parts.push(element("p", job.ahead === null || job.note ? STAGES[/** @type {keyof STAGES} */ (job.stage)] ?? "It has been taken up." : before));
  }
  if (job.note) parts.push(element("p", job.note, "loud"));
  if (job.path) {
    const link = /** @type {HTMLAnchorElement} */ (element("a", job.path));
    link.href = job.path;
    parts.push(link, element("p", "It is yours: you can send a new version of it, or take it off the site.", "quiet"));
    const off = element("button", "Take it off the site");
    off.addEventListener("click", () => retire(job));
    parts.push(off);
  }
  const findings = job.report?.findings ?? [];
  if (job.state === "rejected") parts.push(element("p", "Mend what is listed and submit it again, as often as you need."));
  if (findings.length) parts.push(findingList(findings));
  if (["received", "pending_review"].includes(job.state)) {
    const back = element("button", "Take it back");
    back.addEventListener("click", () => known && ask(known.member, "DELETE", `jobs/${job.jobId}`).then(() => follow(job.jobId), e => tell(words(e), true)));
    parts.push(back);
  }
  following.replaceChildren(...parts);
}

/** Takes a published work down, if its creator means it. @param {any} job */
async function retire(job) {
  if (!known || !confirm(`Take ${job.path} off the site? Its address will say that it is gone. Saves that players made are kept.`)) return;
  try {
    await ask(known.member, "DELETE", `works/${job.slug}`);
    tell(`${job.path} is off the site in a moment.`);
  } catch (error) {
    tell(words(error), true);
  }
  follow(job.jobId);
}

/** Lists the member's submissions. */
async function list() {
  find("own-part").hidden = !known;
  find("is-moderator").hidden = !known?.roles.includes("moderator");
  if (!known) return own.replaceChildren();
  const { submissions } = await ask(known.member, "GET", "submissions");
  own.replaceChildren(...submissions.map((/** @type {any} */ job) => {
    const item = element("li");
    const link = /** @type {HTMLAnchorElement} */ (element("a", job.slug || job.jobId.slice(0, 8)));
    link.href = `#job=${job.jobId}`;
    item.append(link, ` ${STATES[/** @type {keyof STATES} */ (job.state)]}, ${new Date(job.received * 1000).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" })}`);
    return item;
  }));
  if (!submissions.length) own.replaceChildren(element("li", "Nothing yet."));
}

function fromAddress() {
  const id = /^#job=([0-9a-f]{32})$/.exec(location.hash)?.[1];
  if (id && known && id !== followed) follow(id);
}
addEventListener("hashchange", fromAddress);

showKey(now => {
  known = now;
  find("parcel").inert = !known;
  find("parcel").classList.toggle("off", !known);
  if (!known) {
    followed = "";
    following.hidden = true;
  }
  look();
  list().catch(error => tell(words(error), true));
  fromAddress();
});

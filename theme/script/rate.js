// Rating a work: for members, whose key is in this tab. Everyone else sees the average alone.

import { ask } from "./ask.js";
import { Member } from "./member.js";

const form = /** @type {HTMLFormElement} */ (document.getElementById("rate"));
const news = /** @type {HTMLElement} */ (document.getElementById("rate-news"));
const work = (form.dataset.path ?? "").slice(1, -1);
const member = Member.kept();

if (member && member.pseudonym !== work.split("/")[0] && !work.startsWith("preview/")) {
  form.hidden = false;
  form.addEventListener("change", async event => {
    const stars = Number(/** @type {HTMLInputElement} */ (event.target).value);
    try {
      await ask(member, "PUT", `ratings/${work}`, { stars });
      news.textContent = "Thank you. The average is counted anew within a few minutes.";
    } catch (error) {
      news.textContent = error instanceof Error ? error.message : String(error);
    }
  });
}

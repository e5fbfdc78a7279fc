// The part of the submit and review pages that is about the member's key: making one, keeping it in a file, bringing it
// back, forgetting it.

import { ask } from "./ask.js";
import { Member } from "./member.js";

const find = (/** @type {string} */ id) => /** @type {HTMLElement} */ (document.getElementById(id));

/** @typedef {{member: Member, roles: string[]}} Known */

/**
 * Shows the panel and calls `changed` whenever another member is there, or none.
 * @param {(known: Known | null) => void} changed
 */
export function showKey(changed) {
  const [none, some, news] = ["key-none", "key-some", "key-news"].map(find);
  const claim = /** @type {HTMLFormElement} */ (find("claim"));
  const restore = /** @type {HTMLInputElement} */ (find("restore"));

  /** @param {string} text @param {boolean} [loud] */
  function tell(text, loud = false) {
    news.textContent = text;
    news.classList.toggle("loud", loud);
  }

  /** @param {Known | null} known */
  function show(known) {
    none.hidden = known !== null;
    some.hidden = known === null;
    find("key-name").textContent = known?.member.pseudonym ?? "";
    changed(known);
  }

  /** Asks the server who the key belongs to. @param {Member} member */
  async function recognise(member) {
    const { pseudonym, roles } = await ask(member, "GET", "members/me");
    member.pseudonym = pseudonym;
    member.keep();
    show({ member, roles });
  }

  claim.addEventListener("submit", async event => {
    event.preventDefault();
    const pseudonym = String(new FormData(claim).get("pseudonym")).trim();
    const button = /** @type {HTMLButtonElement} */ (claim.querySelector("button"));
    button.disabled = true;
    try {
      const member = await Member.make();
      const { roles } = await ask(member, "POST", "members", { pseudonym, key: member.publicKey() });
      member.pseudonym = pseudonym;
      member.keep();
      show({ member, roles });
      tell("This is you now, in this tab. Save the key to a file: without it nobody can bring the name back.", true);
      find("backup").focus();
    } catch (error) {
      tell(words(error), true);
    } finally {
      button.disabled = false;
    }
  });

  restore.addEventListener("change", async () => {
    const file = restore.files?.[0];
    if (!file) return;
    try {
      await recognise(Member.read(await file.text()));
      tell("The key is back.");
    } catch (error) {
      tell(error instanceof Error && "status" in error && error.status === 401 ? "Nobody on this site has this key." : words(error), true);
    } finally {
      restore.value = "";
    }
  });

  find("backup").addEventListener("click", () => {
    const member = Member.kept();
    if (!member) return;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([member.written()], { type: "application/json" }));
    link.download = `tinyfiles-${member.pseudonym}.json`;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href));
    tell("Keep the file where you keep passwords.");
  });

  find("forget").addEventListener("click", () => {
    if (!confirm("Forget the key in this tab? Without its file the name is lost.")) return;
    Member.forget();
    show(null);
    tell("The key is forgotten here.");
    find("pseudonym").focus();
  });

  const member = Member.kept();
  show(null);
  if (member) recognise(member).catch(error => tell(words(error), true));
}

/** @param {unknown} error */
export function words(error) {
  return error instanceof Error ? error.message : String(error);
}

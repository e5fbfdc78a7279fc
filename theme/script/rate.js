// Rating a work: for members, whose key is in this tab. Everyone else sees the average alone and loads no more than this.

const form = /** @type {HTMLFormElement} */ (document.getElementById("rate"));
const news = /** @type {HTMLElement} */ (document.getElementById("rate-news"));
const path = form.dataset.path ?? "";

/** Whether somebody of this tab may be a member: the name is that of `member.js`. */
function isMember() {
  try {
    return sessionStorage.getItem("tinyfiles-key") !== null;
  } catch {
    return false;
  }
}

async function offer() {
  const [{ ask }, { Member }] = await Promise.all([import("./ask.js"), import("./member.js")]);
  const member = Member.kept();
  if (!member || path.startsWith(`/${member.pseudonym}/`)) return;
  const address = `ratings${path.slice(0, -1)}`;
  const { stars } = await ask(member, "GET", address);
  const given = /** @type {HTMLInputElement | null} */ (form.querySelector(`[value="${stars}"]`));
  if (given) given.checked = true;
  form.hidden = false;
  form.addEventListener("change", async event => {
    try {
      await ask(member, "PUT", address, { stars: Number(/** @type {HTMLInputElement} */ (event.target).value) });
      news.textContent = "Thank you. The average is counted anew within a few minutes.";
    } catch (error) {
      news.textContent = error instanceof Error ? error.message : String(error);
    }
  });
}

// Whoever may not rate is not asked to, and a work plays whether or not it can be rated.
if (isMember() && !path.startsWith("/preview/")) offer().catch(() => {});

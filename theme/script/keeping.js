// Saves and the Python function on the page of a work: answers the work, shows the player what happens, and opens the
// save drawer. What does the keeping is loaded when it is first needed.

import { Refusal } from "./refusal.js";

/** @typedef {import("./visit.js").Visit} Visit */

/** How a frame that starts with a state is named; tf.js reads it before the first script of the work. */
const STATE_NAME = "tf:";

/**
 * @param {string} work creator/work
 * @param {string[]} declared the capabilities of the work
 * @param {(text: string, loud?: boolean) => void} tell
 * @param {(why: string) => void} restart
 */
export function makeKeeping(work, declared, tell, restart) {
  const button = /** @type {HTMLButtonElement | null} */ (document.getElementById("saves"));
  const root = document.getElementById("drawer");
  /** @type {Visit | null} */
  let visit = null;
  /** @type {Promise<Visit> | null} */
  let opening = null;
  /** @type {ReturnType<typeof import("./drawer.js").makeDrawer> | null} */
  let drawer = null;
  let toldCode = "";
  /** @type {Refusal | null} */
  let toldTrouble = null;

  /** @template T @param {Promise<T>} part @returns {Promise<T>} */
  const loaded = part => part.catch(() => {
    throw new Refusal("unreachable", "A part of this page could not be loaded. Check the connection and try again.");
  });

  const getVisit = () => opening ??= (async () => {
    if (!isSecureContext) throw new Refusal("insecure", "Saves need an encrypted connection (https) to this site.");
    const { Visit } = await loaded(import("./visit.js"));
    return visit = new Visit(work, show);
  })().catch(problem => {
    opening = null;
    throw problem;
  });

  /** @type {Promise<(inputs: unknown) => Promise<unknown>> | null} */
  let calling = null;
  const getFunction = () => calling ??= (async () => {
    const { makeFunction } = await loaded(import("./function.js"));
    return makeFunction(work, declared.includes("save_api") ? await getVisit() : null);
  })().catch(problem => {
    calling = null;
    throw problem;
  });

  async function getDrawer() {
    if (!root) throw new Refusal("undeclared", "This work does not save.");
    const [found, { makeDrawer }] = await Promise.all([getVisit(), loaded(import("./drawer.js"))]);
    return drawer ??= makeDrawer(root, found, restart);
  }

  function show() {
    drawer?.show();
    if (!visit) return;
    button?.classList.toggle("due", visit.unsaved);
    button?.setAttribute("aria-label", visit.unsaved ? "Saves: there is progress to save" : "Saves");
    if (visit.code && visit.code !== toldCode) tell(`Saved under ${visit.code}. Note it; you find it again under “Saves”.`);
    if (visit.trouble && visit.trouble !== toldTrouble) {
      tell(visit.trouble.message, true);
      if (visit.trouble.type === "newer-save") open(true);
    }
    toldCode = visit.code ?? "";
    toldTrouble = visit.trouble;
  }

  /** @param {boolean} wide */
  async function open(wide) {
    if (!root || !button) return;
    root.hidden = !wide;
    button.setAttribute("aria-expanded", String(wide));
    if (!wide) return;
    try {
      (await getDrawer()).show();
      root.scrollIntoView({ block: "nearest" });
    } catch (problem) {
      root.hidden = true;
      tell(problem instanceof Refusal ? problem.message : String(problem), true);
    }
  }

  button?.addEventListener("click", () => open(root?.hidden ?? false));
  document.getElementById("drawer-close")?.addEventListener("click", () => {
    open(false);
    button?.focus();
  });
  addEventListener("beforeunload", event => {
    if (visit?.position === "offline" && visit.unsaved) event.preventDefault();
  });

  /** @type {Record<string, import("./bridge.js").Handler>} */
  const handlers = {
    "save.put": async ({ state, unasked }) => (await getVisit()).put(state, unasked === true),
    "save.get": async ({ code }) => {
      try {
        return { state: await (await getVisit()).get(code) };
      } catch (problem) {
        if (problem instanceof Refusal && problem.type === "wrong-word") {
          await open(true);
          drawer?.offerToLoad(String(code).slice(0, 60), problem.message);
        }
        throw problem;
      }
    },
    "backend.call": async ({ inputs }) => (await getFunction())(inputs),
  };

  return {
    handlers,
    /** The name that hands the state of this visit to a new frame, before anything in it runs. */
    nameForFrame: () => visit?.json ? STATE_NAME + visit.json : "",
  };
}

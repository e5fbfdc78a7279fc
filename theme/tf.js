/* tf.js, a work's end of tinyfiles: paste it into the first script. It asks the page around the work for what work.json
   declares. What fails, fails with an Error that has a `type`. All types and signatures: /src/tf.d.ts */
(() => {
  "use strict";
  const waiting = new Map(), problem = (message, more) => Object.assign(new Error(message), more);
  let port, last = 0;

  const ready = new Promise((resolve, reject) => {
    const alone = () => reject(problem("This work is not in its page.", { type: "alone" }));
    if (parent === self) return alone();
    const timer = setTimeout(alone, 3000);
    addEventListener("message", function greeted({ source, data, ports }) {
      if (source !== parent || data?.tf !== "port" || !ports[0]) return;
      removeEventListener("message", greeted);
      clearTimeout(timer);
      port = ports[0];
      port.onmessage = receive;
      resolve({ capabilities: data.capabilities });
    });
    parent.postMessage({ tf: "hello", version: 1 }, "*");
  });
  ready.catch(() => {});

  function receive({ data }) {
    const { id, method, params, result, error } = JSON.parse(data), call = waiting.get(id);
    if (method === "pointer.move") TF.onpointer?.(params.dx, params.dy);
    if (method === "pointer.button") TF.onpointerbutton?.(params.button, params.down);
    if (method === "pointer.lost") TF.onpointerlost?.();
    waiting.delete(id);
    if (error) call?.reject(problem(error.message, error.data));
    else call?.resolve(result);
  }

  async function ask(method, params = {}) {
    await ready;
    return new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      port.postMessage(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }));
    });
  }

  let saves; // itself: then its storage is not
  const TF = globalThis.TF = {
    ready,
    save: state => (saves = true, ask("save.put", { state })),
    load: async code => (await ask("save.get", { code })).state,
    backend: inputs => ask("backend.call", { inputs }),
    pointerLock: () => ask("pointer.lock"),
    pointerUnlock: () => ask("pointer.unlock"),
    onpointer: null, onpointerbutton: null, onpointerlost: null,
  };

  // Where the browser has no storage, one in memory. The page names the frame after the save, so that a game written for
  // localStorage finds it at once. What it stores goes to the page, which saves it when the player wants.
  let given, timer;
  try { given = JSON.parse(name.slice(3)).localStorage; } catch { /* no save yet */ }
  function keep() {
    clearTimeout(timer);
    timer = 0;
    const call = { state: { localStorage }, unasked: true };
    if (!saves) ready.then(r => r.capabilities.includes("save_api") && ask("save.put", call)).catch(() => {});
  }
  const storage = (kept, changed) => new Proxy({
    getItem: key => kept.get(`${key}`) ?? null,
    setItem: (key, value) => { kept.set(`${key}`, `${value}`); changed(); },
    removeItem: key => { kept.delete(`${key}`) && changed(); },
    clear: () => { kept.clear(); changed(); },
    key: n => [...kept.keys()][n] ?? null,
  }, {
    get: (to, key) => key === "length" ? kept.size : to[key] ?? kept.get(key),
    set: (to, key, value) => (to.setItem(key, value), true),
    has: (to, key) => key in to || kept.has(key),
    deleteProperty: (to, key) => (to.removeItem(key), true),
    ownKeys: () => [...kept.keys()],
    getOwnPropertyDescriptor: (to, key) => kept.has(key)
      ? { value: kept.get(key), writable: true, enumerable: true, configurable: true } : undefined,
  });
  const shim = (name, kept, changed) => {
    try { if (globalThis[name]) return; } catch { /* an opaque origin */ }
    Object.defineProperty(globalThis, name, { value: storage(kept, changed), configurable: true });
    return true;
  };
  shim("sessionStorage", new Map(), () => {});
  if (shim("localStorage", new Map(Object.entries(given ?? {})), () => {
    name = "tf:" + JSON.stringify({ localStorage }); // for a reload
    timer ||= setTimeout(keep, 500);
  })) {
    addEventListener("pagehide", () => timer && keep());
  }
})();

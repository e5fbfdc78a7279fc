/* tf.js: the work's end of tinyfiles. Paste it into the first script of a work. It talks to the page around the work,
   which grants what work.json declares. Every promise that fails fails with an Error that has a `type`: "alone" (no
   page around), "undeclared", "unavailable", "too-large", "too-fast", "bad-request", "unknown-method".

   TF.ready                    -> { capabilities: ["save_api", …] }
   TF.save(state)              -> { code }            what JSON can hold
   TF.load(code?)              -> state, or null      without a code: the save of this visit
   TF.backend(inputs)          -> what run(inputs) returned
   TF.pointerLock()               from a click; then TF.onpointer(dx, dy), TF.onpointerbutton(button, down)
   TF.pointerUnlock()             TF.onpointerlost() when the player took it back */
(() => {
  "use strict";
  const waiting = new Map();
  let port = null, last = 0;
  const failure = (type, message) => Object.assign(new Error(message), { type });

  const ready = new Promise((resolve, reject) => {
    const alone = () => reject(failure("alone", "This work is not inside its page."));
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
    const { id, method, params, result, error } = JSON.parse(data);
    if (method === "pointer.move") TF.onpointer?.(params.dx, params.dy);
    if (method === "pointer.button") TF.onpointerbutton?.(params.button, params.down);
    if (method === "pointer.lost") TF.onpointerlost?.();
    const call = waiting.get(id);
    if (!call) return;
    waiting.delete(id);
    if (error) call.reject(failure(error.data?.type, error.message));
    else call.resolve(result);
  }

  async function ask(method, params = {}) {
    await ready;
    return new Promise((resolve, reject) => {
      waiting.set(++last, { resolve, reject });
      port.postMessage(JSON.stringify({ jsonrpc: "2.0", id: last, method, params }));
    });
  }

  const TF = globalThis.TF = {
    ready,
    save: state => ask("save.put", { state }),
    load: async code => (await ask("save.get", { code })).state ?? null,
    backend: inputs => ask("backend.call", { inputs }),
    pointerLock: () => ask("pointer.lock"),
    pointerUnlock: () => ask("pointer.unlock"),
    onpointer: null, onpointerbutton: null, onpointerlost: null,
  };

  // Where the browser refuses storage, one in memory: a game written for localStorage runs, and forgets.
  for (const name of ["localStorage", "sessionStorage"]) {
    try { if (globalThis[name]) continue; } catch { /* an opaque origin */ }
    const kept = new Map();
    const storage = Object.create({
      getItem: key => kept.get(String(key)) ?? null,
      setItem: (key, value) => { kept.set(String(key), String(value)); },
      removeItem: key => { kept.delete(String(key)); },
      clear: () => kept.clear(),
      key: n => [...kept.keys()][n] ?? null,
      get length() { return kept.size; },
    });
    const value = new Proxy(storage, {
      get: (target, key) => key in target ? target[key] : kept.get(key),
      set: (target, key, given) => { kept.set(String(key), String(given)); return true; },
      has: (target, key) => kept.has(key) || key in target,
      deleteProperty: (target, key) => { kept.delete(key); return true; },
      ownKeys: () => [...kept.keys()],
      getOwnPropertyDescriptor: (target, key) => kept.has(key)
        ? { value: kept.get(key), writable: true, enumerable: true, configurable: true } : undefined,
    });
    Object.defineProperty(globalThis, name, { value, configurable: true });
  }
})();

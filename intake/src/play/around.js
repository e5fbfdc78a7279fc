// The page around a work while `intake play` plays it: the site's own bridge and the site's own way to call a function,
// with saves that last as long as the run.

import { Bridge } from "./bridge.js";
import { makeFunction } from "./function.js";
import { Refusal } from "./refusal.js";
import { attributes, declared, work } from "./work.js";

const visit = {
  json: null,
  loads: 0,
  async keep(json) {
    visit.json = json;
    return { code: null };
  },
};
const call = makeFunction(work, declared.includes("save_api") ? visit : null);
const handlers = {
  "save.put": ({ state }) => visit.keep(JSON.stringify(state)),
  "save.get": ({ code }) => {
    if (code) throw new Refusal("not-found", "There is no save under this code for this work.");
    return { state: JSON.parse(visit.json) };
  },
  "backend.call": ({ inputs }) => call(inputs),
};

const bridge = new Bridge(declared, handlers, () => frame.remove());
const frame = document.createElement("iframe");
addEventListener("message", event => { if (event.source === frame.contentWindow) bridge.greet(event); });
for (const [name, value] of Object.entries(attributes)) frame.setAttribute(name, value);
document.body.style.margin = "0";
frame.style.cssText = "display: block; border: 0";
document.body.append(frame);

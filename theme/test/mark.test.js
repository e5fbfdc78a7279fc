// The figures of mark.js are those of sitegen/src/mark.rs, which writes marks.json.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import test from "node:test";

import { mark } from "../script/mark.js";

test("the same figures as sitegen draws", () => {
  const marks = JSON.parse(readFileSync(new URL("marks.json", import.meta.url), "utf8"));
  assert.ok(Object.keys(marks).length >= 40);
  for (const [digest, figure] of Object.entries(marks)) assert.deepEqual(mark(digest), figure);
});

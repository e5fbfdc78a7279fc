// Lines and differences of sources, without a page around them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { difference, lines } from "../script/source.js";

test("every character stays, in its line", () => {
  for (const [text, language] of /** @type {const} */ ([
    ["<p>a // b\n<script>let x = `1\n2`; /* c\nd */ // e\n</script>\n", "html"],
    ['def run(inputs):\n    """a\n    b"""\n    return 0x1f # c\n', "python"],
    ["", "html"], ["\"unfinished\n'", "html"],
  ])) {
    assert.equal(lines(text, language).map(line => line.map(p => p.text).join("")).join("\n"), text);
  }
  assert.deepEqual(lines("let x", "html")[0][0], { kind: "word", text: "let" });
});

test("a difference rebuilds both texts", () => {
  for (const [before, after, changed] of /** @type {[string, string, number][]} */ ([
    ["a b c", "a b c", 0], ["a b c", "a x c", 2], ["", "a", 2], ["a b c d", "b c d e", 2], ["a b", "", 3], ["a a a", "a a", 1],
  ])) {
    const rows = difference(before.split(" "), after.split(" "));
    const side = (/** @type {string} */ other) => rows.filter(r => r.sign !== other).map(r => r.text).join(" ");
    assert.deepEqual([side("+"), side("-")], [before, after]);
    assert.equal(rows.filter(r => r.sign).length, changed, `${before} -> ${after}`);
  }
});

// The mark of a work: a small figure drawn from the SHA-256 of its bytes. sitegen/src/mark.rs draws the same one for
// pages that are written ahead; both are held to theme/test/marks.json.

const SIDE = 6;

/**
 * The figure for a digest in hexadecimal. The digits 0 to 17 are the shapes of the left three columns, row by row; the
 * digits 18 to 35 choose the accent where they are below 5; the last byte is the colour.
 * @param {string} digest
 * @returns {{path: string, accent: string, hue: number}}
 */
export function mark(digest) {
  const layers = { path: "", accent: "" };
  for (let cell = 0; cell < SIDE * SIDE / 2; cell++) {
    const row = Math.floor(cell / 3), col = cell % 3, shape = parseInt(digest[cell], 16);
    const layer = parseInt(digest[18 + cell], 16) < 5 ? "accent" : "path";
    layers[layer] += piece(shape, col, row, false) + piece(shape, SIDE - 1 - col, row, true);
  }
  return { ...layers, hue: parseInt(digest.slice(62), 16) % 12 };
}

/**
 * One cell: nothing, a square, a disc, a quarter of a disc about one corner, or a triangle in one.
 * @param {number} shape @param {number} x @param {number} y @param {boolean} mirrored
 */
function piece(shape, x, y, mirrored) {
  if (shape < 4) return "";
  if (shape < 7) return `M${x} ${y}h1v1h-1z`;
  if (shape < 8) return `M${x} ${y}.5a.5 .5 0 0 1 1 0 .5 .5 0 0 1-1 0z`;
  // The corners clockwise from the top left; the mirror swaps neighbours.
  const corner = shape % 4 ^ Number(mirrored), right = corner === 1 || corner === 2, below = corner > 1;
  const start = `M${x + Number(right)} ${y + Number(below)}h${right ? -1 : 1}`;
  const end = `${right ? 1 : -1} ${below ? -1 : 1}z`;
  return shape < 12 ? `${start}a1 1 0 0 ${right === below ? 1 : 0} ${end}` : `${start}l${end}`;
}

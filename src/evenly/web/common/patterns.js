// Patterns to fill with: a second sign besides color.

/**
 * Return stripes of a color, or a grid of them.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {string} base
 * @param {boolean} crossed
 */
export function hatched(context, base, crossed) {
  const size = 6;
  const tile = document.createElement("canvas");
  tile.width = tile.height = size;
  const pen = tile.getContext("2d");
  if (pen === null) return base;
  pen.globalAlpha = 0.35;
  pen.fillStyle = base;
  pen.fillRect(0, 0, size, size);
  pen.globalAlpha = 1;
  pen.strokeStyle = base;
  pen.lineWidth = 2;
  pen.beginPath();
  for (const shift of [-size, 0, size]) {
    pen.moveTo(shift, size);
    pen.lineTo(shift + size, 0);
    if (crossed) {
      pen.moveTo(shift, 0);
      pen.lineTo(shift + size, size);
    }
  }
  pen.stroke();
  return context.createPattern(tile, "repeat") ?? base;
}

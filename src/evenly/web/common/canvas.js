// A canvas that is as sharp as the screen, and is drawn at most once per frame, when something has changed.

import { onColorsChange, textScale } from "./theme.js";

/**
 * @callback Draw
 * @param {CanvasRenderingContext2D} context scaled to CSS pixels, and cleared
 * @param {number} width in CSS pixels
 * @param {number} height in CSS pixels
 * @param {number} now milliseconds, as `performance.now`
 * @returns {boolean | void} true to be called again at the next frame
 */

/** Calls `draw` when its size or the colors change, and after `invalidate`. */
export class Surface {
  /**
   * @param {HTMLCanvasElement} canvas its size is set by CSS
   * @param {Draw} draw
   */
  constructor(canvas, draw) {
    const context = canvas.getContext("2d");
    if (context === null) throw new Error("This browser cannot draw on a canvas.");
    this.canvas = canvas;
    /** @private */ this.context = context;
    /** @private */ this.draw = draw;
    /** @private */ this.scheduled = false;
    this.width = 0;
    this.height = 0;
    /** see `textScale` */
    this.scale = 1;
    new ResizeObserver(() => this.resize()).observe(canvas);
    onColorsChange(() => this.invalidate());
    this.resize();
  }

  /** Draw at the next frame. */
  invalidate() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame((now) => this.frame(now));
  }

  /** @private */
  resize() {
    const scale = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    this.scale = textScale();
    this.canvas.width = Math.round(this.width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.invalidate();
  }

  /**
   * @private
   * @param {number} now
   */
  frame(now) {
    this.scheduled = false;
    if (this.width === 0 || this.height === 0) return;
    const scale = this.canvas.width / this.width;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    if (this.draw(this.context, this.width, this.height, now) === true) this.invalidate();
  }
}

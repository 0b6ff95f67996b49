/** Shapes on a canvas or in an SVG file: the stage is drawn once, for both. */

/** @typedef {"green" | "yellow" | "none"} Token */

/**
 * @typedef {object} Painter
 * @property {(boxes: number[], fill: string) => void} boxes x, y, width and height of each, one after the other
 * @property {(points: number[], stroke: string, width: number, dash: number[]) => void} line x and y of each point
 * @property {(text: string, x: number, y: number, look: TextLook) => void} text
 * @property {(token: Token, x: number, y: number, radius: number) => void} token
 * @property {(points: number[], fill: string) => void} shape a closed polygon
 */

/** @typedef {{fill: string, size: number, align: "left" | "center" | "right", bold?: boolean}} TextLook */

import { drawToken, TOKEN_VARIABLES } from "../../common/tokens.js";
import { color } from "../../common/theme.js";

const FAMILY = 'system-ui, -apple-system, "Segoe UI", Roboto, sans-serif';

/**
 * @param {CanvasRenderingContext2D} context
 * @returns {Painter}
 */
export function canvasPainter(context) {
  return {
    boxes(boxes, fill) {
      context.fillStyle = fill;
      for (let at = 0; at < boxes.length; at += 4) {
        context.fillRect(boxes[at], boxes[at + 1], boxes[at + 2], boxes[at + 3]);
      }
    },
    line(points, stroke, width, dash) {
      context.strokeStyle = stroke;
      context.lineWidth = width;
      context.setLineDash(dash);
      context.beginPath();
      for (let at = 0; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
      context.stroke();
      context.setLineDash([]);
    },
    text(text, x, y, { fill, size, align, bold }) {
      context.fillStyle = fill;
      context.font = `${bold ? 600 : 400} ${size}px ${FAMILY}`;
      context.textAlign = align;
      context.textBaseline = "middle";
      context.fillText(text, x, y);
    },
    token(token, x, y, radius) {
      drawToken(context, token, x, y, radius);
    },
    shape(points, fill) {
      context.fillStyle = fill;
      context.beginPath();
      for (let at = 0; at < points.length; at += 2) context.lineTo(points[at], points[at + 1]);
      context.closePath();
      context.fill();
    },
  };
}

/** @param {number} value */
const short = (value) => String(Math.round(value * 100) / 100);

/** @param {string} text */
const escaped = (text) => text.replace(/[&<>"]/g, (letter) => `&#${letter.charCodeAt(0)};`);

/**
 * @param {string[]} out elements are added here
 * @returns {Painter}
 */
export function svgPainter(out) {
  return {
    boxes(boxes, fill) {
      let path = "";
      for (let at = 0; at < boxes.length; at += 4) {
        const [x, y, width, height] = boxes.slice(at, at + 4).map(short);
        path += `M${x} ${y}h${width}v${height}h-${width}z`;
      }
      if (path !== "") out.push(`<path d="${path}" fill="${fill}"/>`);
    },
    line(points, stroke, width, dash) {
      const dashes = dash.length > 0 ? ` stroke-dasharray="${dash.join(" ")}"` : "";
      const list = points.map(short).join(" ");
      out.push(`<polyline points="${list}" fill="none" stroke="${stroke}" stroke-width="${width}"${dashes}/>`);
    },
    text(text, x, y, { fill, size, align, bold }) {
      const anchor = { left: "start", center: "middle", right: "end" }[align];
      const weight = bold ? ' font-weight="600"' : "";
      out.push(
        `<text x="${short(x)}" y="${short(y + size * 0.35)}" fill="${fill}" font-size="${size}" ` +
          `font-family="${escaped(FAMILY)}" text-anchor="${anchor}"${weight}>${escaped(text)}</text>`,
      );
    },
    token(token, x, y, radius) {
      const fill = color(TOKEN_VARIABLES[token]);
      const [cx, cy, r] = [x, y, radius].map(short);
      if (token === "green") out.push(`<circle cx="${cx}" cy="${cy}" r="${r}" fill="${fill}"/>`);
      else if (token === "yellow") out.push(`<path d="M${cx} ${short(y - radius)}l${r} ${r}l-${r} ${r}l-${r} -${r}z" fill="${fill}"/>`);
      else out.push(`<circle cx="${cx}" cy="${cy}" r="${r}" fill="none" stroke="${fill}"/>`);
    },
    shape(points, fill) {
      out.push(`<polygon points="${points.map(short).join(" ")}" fill="${fill}"/>`);
    },
  };
}

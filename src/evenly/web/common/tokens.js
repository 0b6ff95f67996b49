// The look of tokens, the same wherever they appear. Each color has a shape of its own, so that no reader depends on
// color: green is a disc, yellow a diamond, and no token a ring.

import { color } from "./theme.js";

/** @typedef {"green" | "yellow" | "none"} Token */

/** @type {{ [token in Token]: string }} */
export const TOKEN_VARIABLES = { green: "--token-green", yellow: "--token-yellow", none: "--token-none" };

/**
 * Draw a token on a canvas, centered, `radius` pixels from its center to its edge.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Token} token
 * @param {number} x
 * @param {number} y
 * @param {number} radius
 */
export function drawToken(context, token, x, y, radius) {
  context.beginPath();
  if (token === "yellow") {
    context.moveTo(x, y - radius);
    context.lineTo(x + radius, y);
    context.lineTo(x, y + radius);
    context.lineTo(x - radius, y);
    context.closePath();
  } else {
    context.arc(x, y, token === "none" ? radius * 0.75 : radius, 0, 2 * Math.PI);
  }
  if (token === "none") {
    context.strokeStyle = color(TOKEN_VARIABLES.none);
    context.lineWidth = Math.max(1, radius / 3);
    context.stroke();
  } else {
    context.fillStyle = color(TOKEN_VARIABLES[token]);
    context.fill();
  }
}

/**
 * Return a token as a small picture for a legend or a table. It is decoration: write its name beside it.
 *
 * @param {Token} token
 */
export function tokenIcon(token) {
  const space = "http://www.w3.org/2000/svg";
  const icon = document.createElementNS(space, "svg");
  icon.setAttribute("viewBox", "-6 -6 12 12");
  icon.setAttribute("class", `token-icon token-${token}`);
  icon.setAttribute("aria-hidden", "true");
  const shape = document.createElementNS(space, "path");
  shape.setAttribute("d", token === "yellow" ? "M0-5 5 0 0 5-5 0Z" : "M-4.5 0a4.5 4.5 0 1 0 9 0a4.5 4.5 0 1 0-9 0");
  icon.append(shape);
  return icon;
}

// Requests to the admin port, and what proves that this page may make them.
//
// After a login, the page has a grant: never the token. It is kept in the memory of this tab, unless the reader wants
// to stay logged in: then the browser has a cookie that scripts cannot read.

const GRANT = "evenly-grant";

/** @returns {Record<string, string>} */
export function headers() {
  const grant = sessionStorage.getItem(GRANT);
  const own = { "X-Evenly-Dashboard": "1" };
  return grant === null ? own : { ...own, Authorization: `Bearer ${grant}` };
}

/**
 * Send a request and return its answer. Throws an Error with the server's sentence if it is rejected.
 *
 * @param {"POST" | "DELETE"} method
 * @param {string} path relative to the page
 * @param {object} [body]
 * @returns {Promise<any>}
 */
export async function send(method, path, body) {
  /** @type {Record<string, string>} */
  const all = { ...headers() };
  /** @type {RequestInit} */
  const request = { method, headers: all };
  if (body !== undefined) {
    all["Content-Type"] = "application/json";
    request.body = JSON.stringify(body);
  }
  let answer;
  try {
    answer = await fetch(path, request);
  } catch {
    throw new Error("The server cannot be reached.");
  }
  /** @type {any} */
  let content = {};
  try {
    content = await answer.json();
  } catch {
    // Some answers have no body.
  }
  if (!answer.ok) throw new Error(content.detail ?? `The server answered with status ${answer.status}.`);
  return content;
}

/**
 * Log in with the admin token. Throws an Error if it is wrong.
 *
 * @param {string} token
 * @param {boolean} keep whether to stay logged in after the tab is closed
 */
export async function login(token, keep) {
  const { grant } = await send("POST", "dashboard/login", { token, keep });
  if (grant !== null) sessionStorage.setItem(GRANT, grant);
}

/** Forget the login, in this tab and in the browser. */
export async function logout() {
  sessionStorage.removeItem(GRANT);
  await send("POST", "dashboard/logout");
}

// The error banner: what went wrong, and what can be done about it.

import * as api from "./api.js";

const EVERY = 4000; // milliseconds between two health checks of the server

const banner = document.getElementById("banner");
const text = banner.querySelector("p");
const button = banner.querySelector("button");
let away = false;
let act = () => {};
let back = () => {};

button.addEventListener("click", () => act());

function tell(message, label, action) {
  text.textContent = message;
  button.textContent = label;
  act = action;
  banner.hidden = false;
}

function hide() {
  banner.hidden = true;
}

async function look() {
  try {
    await api.get("health");
    if (!away) return;
    away = false;
    hide();
    back();
  } catch (error) {
    if (!(error instanceof api.Unreachable)) return;
    away = true;
    tell(`${error.message} What you see is kept; it goes on when the server is back.`, "Retry", look);
  }
}

// Runs an action of the user and shows its error. `lost` is offered when the server no longer has the session.
export async function guarded(action, lost) {
  if (!away) hide();
  await attempt(action, lost);
}

// The same for an action of the page itself, which leaves the banner's current offer in place. Returns whether the
// action succeeded.
export async function attempt(action, lost) {
  try {
    await action();
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    if (error instanceof api.Unreachable) {
      away = true;
      tell(`${error.message} What you see is kept; it goes on when the server is back.`, "Retry", look);
    } else if (error.status === 404 && lost) {
      tell("The server does not have this text any more; it may have been restarted.", "Send it again", () => resend(lost));
    } else {
      tell(error.message, "Dismiss", hide);
      if (!(error instanceof api.ServerError)) throw error;
    }
    return false;
  }
}

// The banner stays until the server has the text again, because nothing can be appended before that.
async function resend(lost) {
  tell("Sending the text again.", "Dismiss", hide);
  if (await attempt(lost)) hide();
}

// Polls the server; `cameBack` is called when it answers again.
export function watchServer(cameBack) {
  back = cameBack;
  setInterval(look, EVERY);
}

// What went wrong, and what can be done about it.

import * as api from "./api.js";

const EVERY = 4000; // milliseconds between two looks at the server

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

// Runs an action of the user and shows what it fails with. `lost` is offered when the server does not know a
// session any more.
export async function guarded(action, lost) {
  if (!away) hide();
  await attempt(action, lost);
}

// The same for what the page does by itself: what the banner offers stays there to be clicked. Tells whether the
// action went well.
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

// The banner stays until the server has the text: before that, nothing can be added to it.
async function resend(lost) {
  tell("Sending the text again.", "Dismiss", hide);
  if (await attempt(lost)) hide();
}

// Looks at the server now and then; `cameBack` is called when it answers again.
export function watchServer(cameBack) {
  back = cameBack;
  setInterval(look, EVERY);
}

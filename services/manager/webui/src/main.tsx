// Starts the page.

import { render } from "preact";

import { Client, words } from "./api/client";
import type { Version } from "./api/records";
import { Page } from "./page";

const root = document.getElementById("page")!;

async function start(): Promise<void> {
  const version = await new Client("").installation<Version>("version");
  root.replaceChildren();
  render(<Page first={version} />, root);
}

start().catch((error: unknown) => {
  const text = document.createElement("p");
  text.className = "notice error";
  text.setAttribute("role", "alert");
  text.textContent = words(error);
  root.querySelector("main")?.replaceChildren(text);
});

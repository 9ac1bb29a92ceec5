// Entry point: fetches the version and renders the page.

import { render } from "preact";

import { Client, errorMessage } from "./api/client";
import type { Version } from "./api/records";
import { Page, fetchView } from "./page";

const root = document.getElementById("page")!;

async function start(): Promise<void> {
  fetchView();
  const version = await new Client("").installation<Version>("version");
  root.replaceChildren();
  render(<Page first={version} />, root);
}

start().catch((error: unknown) => {
  const text = document.createElement("p");
  text.className = "notice error";
  text.setAttribute("role", "alert");
  text.textContent = errorMessage(error);
  root.querySelector("main")?.replaceChildren(text);
});

// Files of a chart: SVG of its pictures, and PNG of its canvases on the background of the page.

import { type Picture, type Placed, drawPicture, svgOf } from "./picture";

/** Space around the chart, in px. */
const MARGIN = 12;

const sources = new WeakMap<Element, () => Picture>();

/** Let an element of a chart be exported; returns a function that withdraws it. */
export function offerPicture(element: HTMLElement, source: () => Picture): () => void {
  sources.set(element, source);
  element.dataset["picture"] = "";
  return () => {
    sources.delete(element);
    delete element.dataset["picture"];
  };
}

interface Box {
  left: number;
  top: number;
  right: number;
  bottom: number;
}

/** Return the box around others, with a margin. */
export function boxAround(boxes: readonly Box[]): { left: number; top: number } & Size {
  const left = Math.min(...boxes.map((box) => box.left)) - MARGIN;
  const top = Math.min(...boxes.map((box) => box.top)) - MARGIN;
  return {
    left,
    top,
    width: Math.ceil(Math.max(...boxes.map((box) => box.right)) + MARGIN - left),
    height: Math.ceil(Math.max(...boxes.map((box) => box.bottom)) + MARGIN - top),
  };
}

interface Size {
  width: number;
  height: number;
}

/** Elements inside of `root` that offer a picture. */
function offered(root: Element): HTMLElement[] {
  return [...root.querySelectorAll<HTMLElement>("[data-picture]")].filter(
    (one) => sources.has(one) && one.clientWidth > 0,
  );
}

const background = (root: Element) =>
  getComputedStyle(root).getPropertyValue("--card").trim() || "#fff";

/** Return the charts inside of `root` as SVG; null without one. */
export function chartSvg(root: Element, title: string): Blob | null {
  const elements = offered(root);
  if (!elements.length) return null;
  const boxes = elements.map((one) => one.getBoundingClientRect());
  const around = boxAround(boxes);
  const placed = elements.map((one, i): Placed => ({
    picture: sources.get(one)!(),
    left: boxes[i]!.left - around.left,
    top: boxes[i]!.top - around.top,
  }));
  const { width, height } = around;
  const font = getComputedStyle(root).fontFamily;
  const page = { width, height, background: background(root), font, title };
  return new Blob([svgOf(placed, page)], { type: "image/svg+xml" });
}

/** Return the charts inside of `root` as PNG in the pixels of the screen; null without one. */
export async function chartImage(root: Element, texts: string): Promise<Blob | null> {
  const elements = offered(root);
  if (!elements.length) return null;
  const labels = [...root.querySelectorAll<HTMLElement>(texts)];
  const around = boxAround([...elements, ...labels].map((one) => one.getBoundingClientRect()));
  const ratio = devicePixelRatio;
  const image = document.createElement("canvas");
  image.width = Math.ceil(around.width * ratio);
  image.height = Math.ceil(around.height * ratio);
  const context = image.getContext("2d")!;
  context.scale(ratio, ratio);
  context.fillStyle = background(root);
  context.fillRect(0, 0, image.width, image.height);
  for (const element of elements) drawElement(context, element, around);
  for (const label of labels) drawLabel(context, label, around);
  return new Promise((resolve) => image.toBlob(resolve, "image/png"));
}

function drawElement(
  context: CanvasRenderingContext2D,
  element: HTMLElement,
  around: { left: number; top: number },
): void {
  const canvases = [...element.querySelectorAll("canvas")].filter((one) => one.width && one.height);
  for (const canvas of canvases) {
    const box = canvas.getBoundingClientRect();
    context.drawImage(canvas, box.left - around.left, box.top - around.top, box.width, box.height);
  }
  if (canvases.length) return;
  const { left, top } = element.getBoundingClientRect();
  context.save();
  context.translate(left - around.left, top - around.top);
  drawPicture(context, sources.get(element)!(), getComputedStyle(element).fontFamily);
  context.restore();
}

function drawLabel(
  context: CanvasRenderingContext2D,
  label: HTMLElement,
  around: { left: number; top: number },
): void {
  const { color, font } = getComputedStyle(label);
  const box = label.getBoundingClientRect();
  context.fillStyle = color;
  context.font = font;
  context.textBaseline = "middle";
  context.textAlign = "center";
  context.fillText(
    label.innerText,
    box.left + box.width / 2 - around.left,
    box.top + box.height / 2 - around.top,
  );
}

// Image of a chart: its canvases, and the texts that stand beside them, on the background of the page.

/** Space around the chart, in px. */
const MARGIN = 12;

/** Return a chart inside of `root` as PNG in the pixels of the screen; null without a canvas. */
export async function chartImage(root: Element, texts: string): Promise<Blob | null> {
  const canvases = [...root.querySelectorAll("canvas")].filter((one) => one.width && one.height);
  if (!canvases.length) return null;
  const labels = [...root.querySelectorAll<HTMLElement>(texts)];
  const boxes = [...canvases, ...labels].map((one) => one.getBoundingClientRect());
  const left = Math.min(...boxes.map((box) => box.left)) - MARGIN;
  const top = Math.min(...boxes.map((box) => box.top)) - MARGIN;
  const ratio = devicePixelRatio;
  const image = document.createElement("canvas");
  image.width = Math.ceil((Math.max(...boxes.map((box) => box.right)) + MARGIN - left) * ratio);
  image.height = Math.ceil((Math.max(...boxes.map((box) => box.bottom)) + MARGIN - top) * ratio);
  const context = image.getContext("2d")!;
  context.scale(ratio, ratio);
  context.fillStyle = getComputedStyle(root).getPropertyValue("--card") || "#fff";
  context.fillRect(0, 0, image.width, image.height);
  for (const canvas of canvases) {
    const box = canvas.getBoundingClientRect();
    context.drawImage(canvas, box.left - left, box.top - top, box.width, box.height);
  }
  for (const label of labels) {
    const { color, font } = getComputedStyle(label);
    const box = label.getBoundingClientRect();
    context.fillStyle = color;
    context.font = font;
    context.textBaseline = "middle";
    context.textAlign = "center";
    context.fillText(
      label.innerText,
      box.left + box.width / 2 - left,
      box.top + box.height / 2 - top,
    );
  }
  return new Promise((resolve) => image.toBlob(resolve, "image/png"));
}

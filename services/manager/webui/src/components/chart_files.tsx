// Buttons that save the charts of an element as PNG and SVG.

import type { RefObject } from "preact";

import { chartImage, chartSvg } from "../charts/chart_export";
import { Icon } from "./icon";
import { saveFile } from "./save_file";

/** `name` is that of the files, without an ending; `title` describes the picture. */
export function ChartFiles({
  box,
  name,
  title,
}: {
  box: RefObject<HTMLElement | null>;
  name: string;
  title: string;
}) {
  const savePng = async () => {
    const image = box.current && (await chartImage(box.current, ".axis-name"));
    if (image) saveFile(image, `${name}.png`);
  };
  const saveSvg = () => {
    const image = box.current && chartSvg(box.current, title);
    if (image) saveFile(image, `${name}.svg`);
  };
  return (
    <div class="row chart-files">
      <button type="button" class="quiet" onClick={() => void savePng()}>
        <Icon name="download" /> PNG
      </button>
      <button type="button" class="quiet" onClick={saveSvg}>
        <Icon name="download" /> SVG
      </button>
    </div>
  );
}

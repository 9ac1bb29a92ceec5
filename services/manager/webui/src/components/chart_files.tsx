// Buttons that save the charts of an element as PNG and SVG.

import type { ComponentChildren, RefObject } from "preact";
import { useRef } from "preact/hooks";

import { chartImage, chartSvg } from "../charts/chart_export";
import { useStore } from "../state/context";
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

/** Charts of an experiment, and below them the buttons that save them. */
export function SavedChart({
  name,
  title,
  children,
}: {
  name: string;
  title: string;
  children: ComponentChildren;
}) {
  const box = useRef<HTMLDivElement>(null);
  const id = useStore().profile?.id ?? "";
  return (
    <div ref={box}>
      {children}
      <ChartFiles box={box} name={`${name}-${id}`} title={`${title} of ${id}`} />
    </div>
  );
}

// Icons as SVG paths of 16 × 16; a text or label beside each has its meaning.

const PATHS = {
  check: "M3 8.5l3.2 3.2L13 5",
  cross: "M4 4l8 8M12 4l-8 8",
  stop: "M5 5h6v6H5z",
  slash: "M3.5 12.5l9-9M8 2a6 6 0 100 12A6 6 0 008 2z",
  dots: "M4 8h.01M8 8h.01M12 8h.01",
  play: "M5.5 3.5v9l7-4.5z",
  pause: "M5.5 3.5v9M10.5 3.5v9",
  question: "M6 6a2 2 0 113 1.7c-.7.4-1 .8-1 1.6M8 12h.01",
  ring: "M8 2.5a5.5 5.5 0 105.5 5.5",
  copy: "M6 6h7v7H6zM10 6V3H3v7h3",
  close: "M4 4l8 8M12 4l-8 8",
  up: "M4 10l4-4 4 4",
  down: "M4 6l4 4 4-4",
  left: "M10 4L6 8l4 4",
  right: "M6 4l4 4-4 4",
  sun: "M8 5.2a2.8 2.8 0 100 5.6 2.8 2.8 0 000-5.6zM8 1.5v1.4M8 13.1v1.4M1.5 8h1.4M13.1 8h1.4M3.4 3.4l1 1M11.6 11.6l1 1M3.4 12.6l1-1M11.6 4.4l1-1",
  moon: "M13 9.6A5.6 5.6 0 016.4 3 5.6 5.6 0 1013 9.6z",
  edit: "M3 13l.7-2.8L10.6 3.3l2.1 2.1-6.9 6.9z",
  columns: "M3 3h10v10H3zM6.5 3v10M9.8 3v10",
  filter: "M2.5 4h11M4.5 8h7M6.5 12h3",
  download: "M8 2.5v7.5M4.8 7L8 10.2 11.2 7M3 13.2h10",
  best: "M8 2.2l1.7 3.6 3.9.5-2.9 2.7.8 3.9L8 11l-3.5 1.9.8-3.9L2.4 6.300l3.9-.5z",
} as const;

export type IconName = keyof typeof PATHS;

export function Icon({ name, size = 16 }: { name: IconName; size?: number }) {
  return (
    <svg
      class="icon"
      viewBox="0 0 16 16"
      width={size}
      height={size}
      aria-hidden="true"
      focusable="false"
    >
      <path d={PATHS[name]} />
    </svg>
  );
}

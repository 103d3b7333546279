/** Resizes a panel by drag or arrows; a double click brings back the width of the design. */

const STEP_PX = 16;

export function Divider(props: {
  direction: "vertical" | "horizontal";
  label: string;
  /** Size in px, null for the design's. */
  at: number | null;
  /** Custom property that holds the design's size. */
  token: string;
  least: number;
  /** What a horizontal divider must not reach under. */
  beside?: string | null;
  set(px: number | null): void;
}) {
  const isVertical = props.direction === "vertical";
  const size = () =>
    props.at ?? (Number.parseFloat(getComputedStyle(document.documentElement).getPropertyValue(props.token)) || props.least);
  const most = () => (isVertical ? window.innerWidth - 480 : window.innerHeight - 380);
  const clamp = (px: number) => Math.round(Math.max(props.least, Math.min(px, Math.max(most(), props.least))));
  const onPointerDown = (down: PointerEvent) => {
    const handle = down.currentTarget as HTMLElement;
    const start = size();
    handle.setPointerCapture(down.pointerId);
    const move = (event: PointerEvent) =>
      props.set(clamp(start + (isVertical ? down.clientX - event.clientX : down.clientY - event.clientY)));
    const up = () => {
      handle.removeEventListener("pointermove", move);
      handle.removeEventListener("pointerup", up);
    };
    handle.addEventListener("pointermove", move);
    handle.addEventListener("pointerup", up);
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const step = { ArrowLeft: 1, ArrowUp: 1, ArrowRight: -1, ArrowDown: -1 }[event.key];
    if (step === undefined) return;
    event.preventDefault();
    event.stopPropagation();
    props.set(clamp(size() + step * STEP_PX));
  };
  const at = props.at === null ? `var(${props.token})` : `${props.at}px`;
  const place = isVertical ? { right: `calc(${at} + 2px)` } : { bottom: `calc(${at} + 2px)`, right: props.beside ? `calc(${props.beside} + 8px)` : "4px" };
  return (
    <div
      class={`divider ${props.direction}`}
      role="separator"
      tabIndex={0}
      aria-label={props.label}
      aria-orientation={props.direction}
      aria-valuenow={Math.round(size())}
      aria-valuemin={props.least}
      style={place}
      onPointerDown={onPointerDown}
      onKeyDown={onKeyDown}
      onDblClick={() => props.set(null)}
    />
  );
}

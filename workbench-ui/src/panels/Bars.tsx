/** A small histogram: square-root height, so that a single value can be seen beside thousands. */

export function Bars(props: { bins: readonly number[]; width: number; height: number; label: string; marked?: number | null }) {
  const { bins, width, height, marked } = props;
  const most = Math.max(1, ...bins);
  const step = width / bins.length;
  return (
    <svg class="bars" width={width} height={height} viewBox={`0 0 ${width} ${height}`} preserveAspectRatio="none" role="img" aria-label={props.label}>
      <path class="bars-floor" d={`M0 ${height - 0.5}H${width}`} />
      {bins.map((count, at) => {
        if (count === 0) return null;
        const tall = Math.max(2, Math.sqrt(count / most) * (height - 1));
        return <rect key={at} class={at === marked ? "marked" : ""} x={at * step} y={height - tall} width={Math.max(step - 1, 1)} height={tall} />;
      })}
    </svg>
  );
}

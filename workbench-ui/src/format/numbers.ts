/** How numbers look (ui-design §3). Pure. */

/** Between a number and its unit. */
export const NARROW_SPACE = "\u202f";
export const MINUS = "\u2212";

const SECOND = 1e9;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

/** Three significant digits, without exponent and without cutting whole digits. */
export function significant(value: number): string {
  const size = Math.abs(value);
  if (size >= 99.95) return value.toFixed(0);
  if (size >= 9.995) return value.toFixed(1);
  return value.toFixed(2);
}

/** Digits in groups of three. */
export function count(value: number): string {
  return signed(value, Math.round(Math.abs(value)).toString().replace(/\B(?=(\d{3})+$)/g, ","));
}

function signed(value: number, size: string): string {
  return value < 0 ? MINUS + size : size;
}

function longDuration(ns: number): string {
  const whole = (value: number, unit: string) => `${value}${NARROW_SPACE}${unit}`;
  if (ns >= DAY) return `${whole(Math.floor(ns / DAY), "d")} ${whole(Math.floor((ns % DAY) / HOUR), "h")}`;
  if (ns >= HOUR) return `${whole(Math.floor(ns / HOUR), "h")} ${whole(Math.floor((ns % HOUR) / MINUTE), "min")}`;
  return `${whole(Math.floor(ns / MINUTE), "min")} ${(Math.floor((ns % MINUTE) / 1e8) / 10).toFixed(1)}${NARROW_SPACE}s`;
}

/** A duration: `300 ns`, `9.87 µs`, `21.2 ms`, `4 min 11.2 s`. */
export function duration(ns: number): string {
  const size = Math.abs(ns);
  if (size >= 59.995 * SECOND) return signed(ns, longDuration(size));
  const [value, unit] =
    size < 999.5 ? [size, "ns"] : size < 999.5e3 ? [size / 1e3, "µs"] : size < 999.5e6 ? [size / 1e6, "ms"] : [size / SECOND, "s"];
  const digits = unit === "ns" ? (Number.isInteger(value) ? value.toFixed(0) : significant(value)) : significant(value);
  return signed(ns, `${digits}${NARROW_SPACE}${unit}`);
}

/**
 * A point in time since the start: ms with three decimals, finer when a pixel is less than a microsecond.
 * `nsPerPixel` is what the reader can tell apart.
 */
export function instant(ns: number, nsPerPixel = 1000): string {
  const decimals = nsPerPixel >= 1000 ? 3 : nsPerPixel >= 1 ? 6 : 6;
  return `${milliseconds(ns, decimals)}${NARROW_SPACE}ms`;
}

/** Milliseconds with grouped whole digits. */
export function milliseconds(ns: number, decimals: number): string {
  const scaled = Math.round(Math.abs(ns) / 10 ** (6 - decimals));
  const whole = Math.floor(scaled / 10 ** decimals);
  const rest = (scaled % 10 ** decimals).toString().padStart(decimals, "0");
  return signed(ns, decimals === 0 ? count(whole) : `${count(whole)}.${rest}`);
}

/** An offset with its sign: `+22.5 µs`. */
export function signedDuration(ns: number): string {
  return ns < 0 ? duration(ns) : `+${duration(ns)}`;
}

/** Bytes in IEC units: two decimals below 10. */
export function bytes(value: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB"];
  let size = Math.abs(value);
  let unit = 0;
  while (size >= 1023.95 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  const digits = unit === 0 ? size.toFixed(0) : significant(size);
  return signed(value, `${digits}${NARROW_SPACE}${units[unit]}`);
}

/** A share of 0..1 as percent; one decimal below 10. */
export function percent(share: number): string {
  const value = share * 100;
  return `${Math.abs(value) < 9.95 ? value.toFixed(1) : value.toFixed(0)}${NARROW_SPACE}%`.replace("-", MINUS);
}

/** A change in percent, with its sign. */
export function signedPercent(share: number): string {
  const text = percent(Math.abs(share));
  return share < 0 ? MINUS + text : `+${text}`;
}

/** For axes only: `30 k`. */
export function axisCount(value: number): string {
  const size = Math.abs(value);
  const [scaled, unit] = size >= 1e9 ? [size / 1e9, "G"] : size >= 1e6 ? [size / 1e6, "M"] : size >= 1e3 ? [size / 1e3, "k"] : [size, ""];
  const digits = Number.isInteger(scaled) ? scaled.toFixed(0) : significant(scaled);
  return signed(value, unit === "" ? digits : `${digits}${NARROW_SPACE}${unit}`);
}

/** What only comes close. */
export function estimate(text: string): string {
  return `≈${NARROW_SPACE}${text}`;
}

/** Percentiles of few values are the maximum: P95 below 20 values, P99 below 100. */
export function isSmallSample(values: number, percentile: 95 | 99): boolean {
  return values < (percentile === 95 ? 20 : 100);
}

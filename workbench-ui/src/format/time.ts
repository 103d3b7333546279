/** Points in time, in the mode the user chose (B-21). Pure. */

import { instant, signedDuration } from "./numbers";

export type TimeDisplay = "start" | "clock" | "tick" | "raw";

/** What the modes need to know about the trace. */
export interface TimeContext {
  startUnixNs: bigint | null;
  zeroTicks: bigint;
  ticksPerSecond: bigint;
  /** The tick that a moment belongs to: its number and start. */
  tickAt(ns: number): { number: number; startNs: number } | null;
}

export function pointInTime(ns: number, display: TimeDisplay, context: TimeContext, nsPerPixel = 1000): string {
  switch (display) {
    case "start":
      return instant(ns, nsPerPixel);
    case "clock":
      return context.startUnixNs === null ? instant(ns, nsPerPixel) : wallClock(context.startUnixNs + BigInt(Math.round(ns)), nsPerPixel);
    case "tick": {
      const tick = context.tickAt(ns);
      return tick === null ? instant(ns, nsPerPixel) : `tick ${tick.number} ${signedDuration(ns - tick.startNs)}`;
    }
    case "raw":
      return (context.zeroTicks + (BigInt(Math.round(ns)) * context.ticksPerSecond) / 1_000_000_000n).toString();
  }
}

/** Time of day in UTC, with as many digits as a pixel tells apart. */
export function wallClock(unixNs: bigint, nsPerPixel = 1000): string {
  const seconds = unixNs / 1_000_000_000n;
  const date = new Date(Number(seconds) * 1000);
  const two = (value: number) => value.toString().padStart(2, "0");
  const fraction = (unixNs % 1_000_000_000n).toString().padStart(9, "0").slice(0, nsPerPixel >= 1e6 ? 3 : nsPerPixel >= 1000 ? 6 : 9);
  return `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}:${two(date.getUTCSeconds())}.${fraction}`;
}

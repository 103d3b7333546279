/** What the time displays need to know about the trace on the screen. */

import type { TimeContext } from "../format";
import { meta, ticks } from "../state/store";

export function timeContext(): TimeContext {
  const time = meta.value?.time;
  return {
    startUnixNs: time?.startUnixNs ? BigInt(time.startUnixNs) : null,
    zeroTicks: BigInt(time?.zeroTicks ?? "0"),
    ticksPerSecond: BigInt(time?.ticksPerSecond ?? "1000000000"),
    tickAt: (ns) => {
      const table = ticks.value;
      const place = table.placeAt(ns);
      const [number, startNs] = [table.numbers[place], table.startNs[place]];
      return number === undefined || startNs === undefined ? null : { number, startNs };
    },
  };
}

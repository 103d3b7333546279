/** Tracks of gauges: which gauges share one, and their scale, which is fixed when the trace is opened (B-14, B-15). Pure. */

import type { GaugeInfo, Gauges, Lane } from "../protocol/types";
import type { SignalToken } from "./palette";

export interface GaugeLayer {
  lane: number;
  gauge: number;
  label: string;
  colour: SignalToken;
}

export type GaugeUnit = "bytes" | "count" | "percent";

export interface GaugeSpec {
  key: string;
  label: string;
  unit: GaugeUnit;
  /** Noun of counts: "pages". */
  noun: string;
  /** Stacked from the bottom. */
  layers: GaugeLayer[];
  /** Drawn as a dashed line over the layers. */
  line: GaugeLayer | null;
  /** Top and bottom of the track, for the whole session. */
  scale: { from: number; to: number };
  /** Shows the difference from value to value, of cumulative counters. */
  isRate: boolean;
  isMemory: boolean;
  /** Shown without opening the group. */
  isMain: boolean;
}

interface Plan {
  key: string;
  label: string;
  noun?: string;
  layers: readonly (readonly [number, string, SignalToken])[];
  line?: readonly [number, string, SignalToken];
  isRate?: boolean;
  isMemory?: boolean;
  isMain?: boolean;
}

const GREY: SignalToken = "fam-other";

const PLANS: readonly Plan[] = [
  {
    key: "memory",
    label: "Memory",
    isMemory: true,
    isMain: true,
    // From the bottom: the large layer that rarely moves, then the edge that does.
    layers: [
      [0x0113, "LOH", "mem-loh"],
      [0x0114, "POH", "mem-poh"],
      [0x0112, "2", "mem-gen2"],
      [0x0111, "1", "mem-gen1"],
      [0x0110, "0", "mem-gen0"],
    ],
    line: [0x0115, "committed", "mem-committed"],
  },
  { key: "unmanaged", label: "Unmanaged", isMain: true, layers: [[0x0100, "in use", "fam-page"]], line: [0x0101, "peak", "text-2"] },
  {
    key: "page-cache",
    label: "Page cache",
    noun: "pages",
    isMain: true,
    layers: [
      [0x0204, "exclusive", "fam-runtime"],
      [0x0203, "dirty", "fam-page"],
      [0x0202, "clean", "mem-gen2"],
      [0x0201, "free", "fam-idle"],
    ],
  },
  { key: "wal-buffer", label: "WAL buffer", layers: [[0x0300, "used", "fam-wal"]], line: [0x0301, "capacity", "text-2"] },
  { key: "wal-frames", label: "WAL frames in flight", layers: [[0x0302, "frames", "fam-wal"]] },
  { key: "wal-staging", label: "WAL staging", layers: [[0x0303, "rented", "fam-wal"]], line: [0x0304, "peak", "text-2"] },
  { key: "transient", label: "Transient store", layers: [[0x0210, "used", "fam-page"]], line: [0x0211, "most", "text-2"] },
  { key: "transactions", label: "Transactions", layers: [[0x0400, "active", "fam-txn"]] },
  { key: "uow", label: "Units of work", layers: [[0x0402, "active", "fam-txn"]] },
  { key: "commits", label: "Commits per tick", isRate: true, layers: [[0x0410, "commits", "fam-txn"]] },
  { key: "rollbacks", label: "Rollbacks per tick", isRate: true, layers: [[0x0411, "rollbacks", "fam-txn"]] },
  { key: "uow-created", label: "Units of work created per tick", isRate: true, layers: [[0x0412, "created", "fam-txn"]] },
  { key: "uow-committed", label: "Units of work committed per tick", isRate: true, layers: [[0x0413, "committed", "fam-txn"]] },
  { key: "tx-created", label: "Transactions created per tick", isRate: true, layers: [[0x0414, "created", "fam-txn"]] },
  { key: "wal-rents", label: "WAL staging rents per tick", isRate: true, layers: [[0x0306, "rents", "fam-wal"]] },
];

/** Gauges whose registry type says bytes and whose name says something else. */
const NOT_BYTES = /(Total|Cumulative|Ticks)$/;

function unitOf(info: GaugeInfo): GaugeUnit {
  if (info.valueKind === "U32PercentHundredths") return "percent";
  return info.valueKind === "U64Bytes" && !NOT_BYTES.test(info.name) ? "bytes" : "count";
}

/** "PageCacheLRUAgeTicks" → "Page cache LRU age ticks". */
export function spokenName(name: string): string {
  const words = name.replace(/([a-z0-9])([A-Z])/g, "$1 $2").replace(/([A-Z]+)([A-Z][a-z])/g, "$1 $2").split(" ");
  return words.map((word, at) => (at === 0 || /^[A-Z]{2,}$/.test(word) ? word : word.toLowerCase())).join(" ");
}

/** The next of 1, 2, 5 times a power of ten, or of two for bytes, at or above a value. */
export function niceTop(value: number, unit: GaugeUnit): number {
  if (value <= 0) return 1;
  if (unit === "bytes") {
    const power = 2 ** Math.ceil(Math.log2(value));
    return value <= power * 0.75 ? power * 0.75 : power;
  }
  const power = 10 ** Math.floor(Math.log10(value));
  return power * ([1, 2, 5, 10].find((step) => step * power >= value) ?? 10);
}

/** Scale of a track: from 0 (or the lowest value) to a round number above the highest, whatever the window is. */
export function fixedScale(layers: GaugeInfo[], stackMax: number | null, line: GaugeInfo | null, unit: GaugeUnit): { from: number; to: number } {
  const tops = layers.map(({ max }) => Number(max));
  const most = stackMax ?? (layers.length > 1 ? tops.reduce((sum, top) => sum + top, 0) : Math.max(...tops));
  const top = Math.max(most, line === null ? 0 : Number(line.max));
  const from = Math.min(0, ...layers.map(({ min }) => Number(min)));
  return { from, to: niceTop(top, unit) };
}

export function gaugeTracks(lanes: Lane[], gauges: Gauges | null): GaugeSpec[] {
  if (gauges === null) return [];
  const known = new Map(gauges.gauges.map((info) => [info.gauge, info]));
  const laneIds = new Set(lanes.map(({ id }) => id));
  const used = new Set<number>();
  const layer = ([gauge, label, colour]: readonly [number, string, SignalToken]): [GaugeLayer, GaugeInfo][] => {
    const info = known.get(gauge);
    if (info === undefined || !laneIds.has(info.lane)) return [];
    used.add(gauge);
    return [[{ lane: info.lane, gauge, label, colour }, info]];
  };
  const specs: GaugeSpec[] = [];
  const add = (plan: Plan) => {
    const layers = plan.layers.flatMap(layer);
    const line = plan.line === undefined ? undefined : layer(plan.line)[0];
    const first = layers[0]?.[1];
    if (first === undefined) return;
    const unit = unitOf(first);
    const stack = gauges.stacks.find(({ stack }) => stack === first.stack)?.max ?? null;
    const infos = layers.map(([, info]) => info);
    specs.push({
      key: plan.key,
      label: plan.label,
      unit,
      noun: plan.noun ?? "",
      layers: layers.map(([one]) => one),
      line: line?.[0] ?? null,
      scale: fixedScale(infos, layers.length > 1 ? stack : null, line?.[1] ?? null, unit),
      isRate: plan.isRate ?? false,
      isMemory: plan.isMemory ?? false,
      isMain: plan.isMain ?? false,
    });
  };
  PLANS.forEach(add);
  for (const info of gauges.gauges) {
    if (used.has(info.gauge) || info.isOnce) continue;
    const label = spokenName(info.name.replace(/(Bytes|PctHundredths)$/, ""));
    add({ key: `gauge-${info.gauge}`, label, layers: [[info.gauge, label, GREY]] });
  }
  return specs;
}

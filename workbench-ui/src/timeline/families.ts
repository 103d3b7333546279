/** Which of the 16 family colours a registry family has, and which kinds are drawn as waiting. Pure. */

export const FAMILY_TOKENS = [
  "sched", "dispatch", "runtime", "ecs", "query", "view", "btree", "mvcc",
  "txn", "wal", "ckpt", "page", "disk", "spatial", "subs", "locks",
] as const;
export type FamilyToken = (typeof FAMILY_TOKENS)[number] | "other" | "idle";

/** By family, longest beginning first. */
const BY_FAMILY: readonly (readonly [string, FamilyToken])[] = [
  ["Scheduler.Dependency", "dispatch"],
  ["Scheduler.Dispense", "dispatch"],
  ["Scheduler.Graph", "dispatch"],
  ["Scheduler.Queue", "dispatch"],
  ["Scheduler", "sched"],
  ["Runtime.Transaction", "runtime"],
  ["Runtime", "runtime"],
  ["Data.Transaction", "txn"],
  ["Data.BTree", "btree"],
  ["Data.Mvcc", "mvcc"],
  ["Transaction", "txn"],
  ["Uow", "txn"],
  ["EcsQuery", "query"],
  ["EcsView", "view"],
  ["Ecs", "ecs"],
  ["Query", "query"],
  ["Statistics", "query"],
  ["BTree", "btree"],
  ["PageCache", "page"],
  ["Storage", "disk"],
  ["Wal", "wal"],
  ["Checkpoint", "ckpt"],
  ["Recovery", "ckpt"],
  ["Concurrency", "locks"],
  ["Spatial", "spatial"],
  ["WriteTickFence", "spatial"],
  ["Subscriptions", "subs"],
  ["Gc", "runtime"],
  ["Memory", "page"],
  ["OsScheduling", "sched"],
  ["Profiler", "other"],
];

/** The colour of a family; "other" for families that the registry does not know yet. */
export function familyToken(family: string): FamilyToken {
  return BY_FAMILY.find(([name]) => family === name || family.startsWith(`${name}.`))?.[1] ?? "other";
}

/** Is the family one that this page knows? */
export function isKnownFamily(family: string): boolean {
  return BY_FAMILY.some(([name]) => family === name || family.startsWith(`${name}.`));
}

/** Kinds that are an absence of work, and what the lane says of them. */
export const WAITING_KINDS: ReadonlyMap<number, string> = new Map([
  [150, "idle"],
  [152, "between ticks"],
  [224, "sleep"],
  [241, "metronome wait"],
]);

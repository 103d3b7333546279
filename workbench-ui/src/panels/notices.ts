/** What is missing from a recording, in words (B-4, B-5, ui-design §8). Pure. */

import { count, duration } from "../format";
import type { Notice, Notices } from "../protocol/types";

/** How many events are known to be not shown: withheld, dropped by the recorder, or cut by the engine. */
export function notShown(notices: Notices, withheld: number): number {
  const losses = notices.losses.reduce((sum, { records }) => sum + records, 0);
  return withheld + losses + notices.damagedEvents;
}

/** A path as one word of a shell. */
export function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** The command that makes a whole file of a damaged one. */
export function repairCommand(path: string, notices: readonly Notice[]): string {
  const needsSalvage = notices.some(({ hint }) => hint?.includes("--salvage"));
  const target = path.replace(/(\.typhon-trace)?$/, "-repaired.typhon-trace");
  return `typhon trace repair ${shellWord(path)} -o ${shellWord(target)}${needsSalvage ? " --salvage" : ""}`;
}

/** The fact in a line: where the recording ends, or how much of it cannot be read. */
export function headline(notices: Notices, endNs: number): string {
  const bad = notices.notices.filter(({ severity }) => severity !== "info");
  if (bad.some(({ code }) => code === "truncated")) return `The recording stops at ${duration(endNs)}`;
  if (bad.length > 0) return `${count(bad.length)} ${bad.length === 1 ? "place" : "places"} in the file cannot be read`;
  if (notices.notices.some(({ code }) => code === "not-closed-cleanly")) return "The recording was not closed";
  if (notices.losses.length > 0) {
    return `The recorder lost ${count(notices.losses.reduce((sum, { records }) => sum + records, 0))} events`;
  }
  if (notices.missingTicks.count > 0) return `${count(notices.missingTicks.count)} ticks are missing`;
  const first = notices.notices[0];
  return first === undefined ? "" : first.message;
}

/** Is something missing, or was the end not written? What is only worth knowing stays in the list. */
export function isLossy({ notices, losses, missingTicks }: Notices): boolean {
  return losses.length > 0 || missingTicks.count > 0 || notices.some(({ severity, code }) => severity !== "info" || code === "not-closed-cleanly");
}

/** Lines of the list. */
export function total({ notices, losses, missingTicks, capped }: Notices): number {
  return notices.length + losses.length + (missingTicks.count > 0 ? 1 : 0) + capped.length;
}

/** Order of the rows of a table. Pure. */

export interface Sort {
  key: string;
  isDescending: boolean;
}

type Value = string | number | null;

const collator = new Intl.Collator(undefined, { numeric: true });

/** Missing values come last, whichever way the rest is sorted; equal rows keep their order. */
export function sorted<R>(rows: readonly R[], value: (row: R) => Value, isDescending: boolean): R[] {
  const sign = isDescending ? -1 : 1;
  return [...rows].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    if (x === null || y === null) return Number(x === null) - Number(y === null);
    if (typeof x === "number" && typeof y === "number") return sign * (x - y);
    return sign * collator.compare(String(x), String(y));
  });
}

/** Numbers are wanted largest first, texts from A; a second click turns that round. */
export function nextSort(now: Sort, key: string, isNumber: boolean): Sort {
  return now.key === key ? { key, isDescending: !now.isDescending } : { key, isDescending: isNumber };
}

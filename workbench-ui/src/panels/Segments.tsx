/** A choice of one, all of them in sight. */

export function Segments<T extends string>(props: {
  label: string;
  values: readonly (readonly [T, string])[];
  now: T;
  set(value: T): void;
}) {
  return (
    <div class="segments" role="group" aria-label={props.label}>
      {props.values.map(([value, text]) => (
        <button type="button" key={value} aria-pressed={props.now === value} onClick={() => props.set(value)}>
          {text}
        </button>
      ))}
    </div>
  );
}

import { useEffect, useState } from "preact/hooks";
import { announcement } from "../state/store";

/** At most one message per second; of several the last one is spoken. */
export function LiveRegion() {
  const [spoken, setSpoken] = useState("");
  const text = announcement.value;
  useEffect(() => {
    const timer = setTimeout(() => setSpoken(text), 1000);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <div class="visually-hidden" role="status" aria-live="polite">
      {spoken}
    </div>
  );
}

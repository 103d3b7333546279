/** What lies over the page: palette, keys, opening a trace. */

import { openFloat } from "../state/store";
import { Help } from "./floats/Help";
import { Open } from "./floats/Open";
import { Palette } from "./floats/Palette";

export function Floats() {
  switch (openFloat.value) {
    case "none":
      return null;
    case "palette":
      return <Palette />;
    case "help":
      return <Help />;
    case "open":
      return <Open />;
  }
}

/** What the shell puts into its slots. */

export { Bookmarks } from "./Bookmarks";
export { Collections } from "./Collections";
export { Floats } from "./Floats";
export { Gauges } from "./Gauges";
export { Inspector } from "./Inspector";
export { Lanes } from "./Lanes";
export { NoticeBar } from "./NoticeBar";
export { Notices } from "./Notices";
export { SearchField } from "./SearchField";
export { SearchList } from "./SearchList";
export { Statistics } from "./Statistics";
export { StatusBar } from "./StatusBar";
export { Ticks } from "./Ticks";
export { TopSpans } from "./TopSpans";

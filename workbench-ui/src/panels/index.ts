/** What the shell puts into its slots. */

export { Bookmarks } from "./Bookmarks";
export { Floats } from "./Floats";
export { Inspector } from "./Inspector";
export { NoticeBar } from "./NoticeBar";
export { Notices } from "./Notices";
export { SearchField } from "./SearchField";
export { SearchList } from "./SearchList";
export { Statistics } from "./Statistics";
export { StatusBar } from "./StatusBar";
export { TopSpans } from "./TopSpans";

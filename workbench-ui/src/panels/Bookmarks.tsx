export function Bookmarks() {
  return null;
}

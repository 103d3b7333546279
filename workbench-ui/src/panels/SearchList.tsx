export function SearchList() {
  return null;
}

export function SearchField() {
  return null;
}

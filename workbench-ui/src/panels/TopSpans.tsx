export function TopSpans() {
  return null;
}

export function Floats() {
  return null;
}

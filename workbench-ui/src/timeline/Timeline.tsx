export function Timeline() {
  return <div class="timeline" />;
}

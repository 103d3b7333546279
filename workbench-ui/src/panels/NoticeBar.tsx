export function NoticeBar() {
  return null;
}

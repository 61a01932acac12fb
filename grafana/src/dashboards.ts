export function dashboards(): { uid?: string }[] {
  return [];
}

/** What tells tabs apart whose files have one name. Pure. */

interface File {
  id: string;
  name: string;
  path: string;
}

/** The last folders of a path, as many as asked for, without the file. */
function folders(path: string, many: number): string {
  return path.split(/[\\/]/).slice(0, -1).slice(-many).join("/");
}

/**
 * For each file the fewest of the folders it is in that no other file of its name is in; nothing where the name says
 * enough. A file that was opened again after it changed is told by the number of its session.
 */
export function asidesOf(files: readonly File[]): string[] {
  return files.map((file) => {
    const others = files.filter(({ id, name }) => id !== file.id && name === file.name);
    if (others.length === 0) return "";
    const deepest = file.path.split(/[\\/]/).length;
    for (let many = 1; many < deepest; many += 1) {
      const own = folders(file.path, many);
      if (others.every(({ path }) => folders(path, many) !== own)) return own;
    }
    const isAgain = others.some(({ path }) => path === file.path);
    return isAgain ? `no. ${file.id}` : folders(file.path, deepest);
  });
}

import { expect, it } from "vitest";
import { asidesOf } from "../src/shell/asides";

const asides = (...paths: string[]) => asidesOf(paths.map((path, at) => ({ id: String(at + 1), name: path.split(/[\\/]/).at(-1) ?? "", path })));

it("tells files of one name apart by the folders they are in", () => {
  expect(asides("/a/run.t", "/b/run.t", "/a/other.t")).toEqual(["a", "b", ""]);
  expect(asides("/x/1/out/run.t", "/x/2/out/run.t")).toEqual(["1/out", "2/out"]);
  expect(asides("C:\\a\\run.t", "C:\\b\\run.t")).toEqual(["a", "b"]);
});

it("has something to say of a file without a folder, and of one that was opened again", () => {
  expect(asides("/run.t", "/a/run.t")).toEqual(["", "a"]);
  expect(asides("/a/run.t", "/a/run.t")).toEqual(["no. 1", "no. 2"]);
});

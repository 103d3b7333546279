export * from "./numbers";
export * from "./text";
export * from "./time";

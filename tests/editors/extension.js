"use strict";
// Drives the extension with a stand-in for VS Code and the real service; prints what it did as JSON.
// Arguments: the folder of the extension, and the command as JSON.

const Module = require("node:module");
const path = require("node:path");

const [folder, command] = process.argv.slice(2);
const text = "# a file\nkernel gemv(n):\n    in A: f64[n, n], x: f64[n]\n    inout y: f64[n]\n" +
  "    for j in range(n), i in range(n):\n        y[i] += A[i, j] * x[j]\n\nmachine m:\n    peak f64 fma 1 TFLOP/s\n    memory DRAM 1 GB, 1 GB/s\n";
const done = { edits: [], messages: [] };
const registered = {};
const settings = { command: JSON.parse(command), machine: "zen2_epyc_7452", sizes: { n: 256, other: 3 }, deep: false };
const lines = text.split("\n");

class Position { constructor(line, character) { Object.assign(this, { line, character }); } }
class Range { constructor(...at) { this.at = at; } }
class WorkspaceEdit { replace(uri, range, made) { done.edits.push({ range: range.at, made }); } }
const nothing = () => ({ dispose() {} });
const document = {
  languageId: "other", uri: { toString: () => "file:///a.roof", scheme: "file" }, version: 1, getText: () => text,
  lineAt: (k) => ({ range: { end: new Position(k, lines[k].length) } }),
};
const vscode = {
  Position, Range, WorkspaceEdit,
  Hover: class { constructor(contents) { this.contents = contents; } },
  MarkdownString: class { constructor(value) { this.value = value; } },
  CodeAction: class { constructor(title, kind) { Object.assign(this, { title, kind }); } },
  CodeActionKind: { Refactor: "refactor" },
  ProgressLocation: { Notification: 1 },
  languages: {
    createDiagnosticCollection: () => ({ set() {}, delete() {}, dispose() {} }),
    registerHoverProvider: (_, made) => { registered.hover = made; return nothing(); },
    registerCodeActionsProvider: (_, made) => { registered.actions = made; return nothing(); },
  },
  commands: { registerCommand: (name, made) => { registered[name] = made; return nothing(); } },
  window: {
    withProgress: (_, work) => work(),
    showQuickPick: async (items) => { done.offered = items.map((one) => one.label); return items[0]; },
    showInformationMessage: (message) => done.messages.push(message),
    showWarningMessage: (message) => done.messages.push(message),
    showInputBox: async () => "v100",
  },
  workspace: {
    isTrusted: true, textDocuments: [document],
    getConfiguration: () => ({ get: (name) => settings[name] }),
    getWorkspaceFolder: () => undefined,
    openTextDocument: async () => document,
    applyEdit: async () => true,
    onDidOpenTextDocument: nothing, onDidSaveTextDocument: nothing, onDidChangeTextDocument: nothing,
    onDidCloseTextDocument: nothing,
  },
};
const load = Module._load;
Module._load = (name, ...rest) => (name === "vscode" ? vscode : load(name, ...rest));
const { activate } = require(path.join(folder, "extension.js"));

async function main() {
  const context = { subscriptions: [] };
  activate(context);
  const over = (line) => registered.hover.provideHover(document, new Position(line, 0));
  done.hover = (await over(4))?.contents.value;
  done.outside = (await over(7)) === undefined;
  done.actions = registered.actions.provideCodeActions(document, { start: new Position(2, 0) }).map((a) => a.command);
  await registered["roof.advise"](document.uri, 3);
  settings.machine = "no_such_machine";
  await registered["roof.advise"](document.uri, 3);
  settings.command = ["/no/such/program"];
  await registered["roof.advise"](document.uri, 3);
  context.subscriptions.forEach((one) => one.dispose());
  console.log(JSON.stringify(done));
}

main();

"use strict";
// Runs `roofdsl check --json` on a file that is opened, changed or saved, and shows what it finds where it is.
// Asks `roofdsl serve --stdio` for W, Q and I of the kernel under the cursor, and for changes that save time.

const path = require("node:path");
const { execFile } = require("node:child_process");
const vscode = require("vscode");
const { Service } = require("./service.js");
const { changeLabel, hoverText, kernelAt, kernelText, sizesOf } = require("./words.js");

const WAIT_MS = 300; // after the last key
const LIMIT_MS = 20000;

/** A finding of check --json as a range: its lines and columns count from 1 and end after the last character. */
function rangeOf(found) {
  return new vscode.Range(found.line - 1, found.column - 1, found.end_line - 1, found.end_column - 1);
}

/** `target` is what was checked; a finding in a file that it uses stands at the top, with its place. */
function diagnosticOf(found, target) {
  const own = found.file === target || found.file === "<stdin>";
  const place = own ? "" : `${found.file}:${found.line}:${found.column}: `;
  const text = `${place}${found.message}${found.help ? `\n${found.help}` : ""}`;
  const severity = vscode.DiagnosticSeverity[found.severity === "warning" ? "Warning" : "Error"];
  const range = own ? rangeOf(found) : new vscode.Range(0, 0, 0, 1);
  const diagnostic = new vscode.Diagnostic(range, text, severity);
  diagnostic.source = "roofdsl";
  diagnostic.code = found.code;
  return diagnostic;
}

function activate(context) {
  const shown = vscode.languages.createDiagnosticCollection("roof");
  const waiting = new Map();
  const running = new Map();
  let complained = false;

  function check(document, deep) {
    if (document.languageId !== "roof" || !vscode.workspace.isTrusted) return;
    const settings = vscode.workspace.getConfiguration("roof", document.uri);
    const [program, ...first] = settings.get("command");
    const saved = !document.isDirty && document.uri.scheme === "file";
    // Files it uses are looked for beside it, so the command runs in its folder; what is not saved goes to its input.
    const target = saved ? `./${path.basename(document.fileName)}` : "-";
    const options = ["check", target, "--json", ...(deep && settings.get("deep") ? ["--deep"] : [])];
    const folder = document.uri.scheme === "file" ? path.dirname(document.fileName) : undefined;
    const key = document.uri.toString();
    running.get(key)?.kill();
    const version = document.version;
    const child = execFile(program, [...first, ...options], { cwd: folder, timeout: LIMIT_MS }, (error, output) => {
      if (running.get(key) === child) running.delete(key);
      if (document.isClosed || document.version !== version) return;
      try {
        shown.set(document.uri, JSON.parse(output).diagnostics.map((found) => diagnosticOf(found, target)));
      } catch {
        if (error && !error.killed && !complained) {
          complained = true;
          vscode.window.showWarningMessage(`roofdsl: \`${program}\` could not be run; set roof.command to where it is.`);
        }
      }
    });
    running.set(key, child);
    child.stdin.on("error", () => undefined); // it may end before it has read everything
    child.stdin.end(saved ? "" : document.getText());
  }

  function soon(document) {
    clearTimeout(waiting.get(document));
    waiting.set(document, setTimeout(() => check(document, false), WAIT_MS));
  }

  context.subscriptions.push(
    shown,
    vscode.workspace.onDidOpenTextDocument((document) => check(document, false)),
    vscode.workspace.onDidSaveTextDocument((document) => check(document, true)),
    vscode.workspace.onDidChangeTextDocument((event) => soon(event.document)),
    vscode.workspace.onDidCloseTextDocument((document) => {
      clearTimeout(waiting.get(document));
      waiting.delete(document);
      shown.delete(document.uri);
    }),
  );
  vscode.workspace.textDocuments.forEach((document) => check(document, false));
  activateService(context);
}

/** Hovers and the changes of `roofdsl advise`, both of the kernel under the cursor. */
function activateService(context) {
  let service;

  function ask(method, params, uri) {
    if (!vscode.workspace.isTrusted) return Promise.reject(new Error("the workspace is not trusted"));
    const command = vscode.workspace.getConfiguration("roof", uri).get("command");
    const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath;
    if (!service || String(service.command) !== String(command) || service.folder !== folder) {
      service?.dispose();
      service = new Service(command, folder);
    }
    return service.request(method, params);
  }

  const hover = {
    async provideHover(document, position) {
      const text = document.getText();
      if (!kernelAt(text, position.line) || !vscode.workspace.isTrusted) return undefined;
      try {
        const found = await ask("hover", { text, line: position.line + 1 }, document.uri);
        return new vscode.Hover(new vscode.MarkdownString(hoverText(found)));
      } catch {
        return undefined; // errors of the text are shown where they are
      }
    },
  };

  const actions = {
    provideCodeActions(document, range) {
      const kernel = kernelAt(document.getText(), range.start.line);
      if (!kernel) return [];
      const action = new vscode.CodeAction(`Find changes that make ${kernel.name} faster`, vscode.CodeActionKind.Refactor);
      action.command = { command: "roof.advise", title: action.title, arguments: [document.uri, range.start.line] };
      return [action];
    },
  };

  async function advise(uri, line) {
    const editor = vscode.window.activeTextEditor;
    const document = uri ? await vscode.workspace.openTextDocument(uri) : editor?.document;
    const kernel = document && kernelAt(document.getText(), line ?? editor.selection.active.line);
    if (!kernel) return;
    const settings = vscode.workspace.getConfiguration("roof", document.uri);
    const machine = settings.get("machine") || (await vscode.window.showInputBox({ prompt: "Machine, such as v100" }));
    if (!machine) return;
    const text = document.getText();
    const params = { text, name: kernel.name, machine, set: sizesOf(text, kernel.first, settings.get("sizes")) };
    try {
      const version = document.version;
      const found = await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: `roofdsl: changes of ${kernel.name}` },
        () => ask("advise", params, document.uri),
      );
      const usable = found.advice.filter((one) => one.text);
      if (!usable.length) {
        vscode.window.showInformationMessage(`roofdsl: nothing found makes ${kernel.name} faster on ${machine}.`);
        return;
      }
      const items = usable.map((one) => ({ label: changeLabel(one), detail: one.because, text: one.text }));
      const picked = await vscode.window.showQuickPick(items, { title: `${kernel.name} on ${machine}` });
      if (!picked || document.version !== version) return;
      const edit = new vscode.WorkspaceEdit();
      const last = document.lineAt(kernel.end - 1).range.end;
      edit.replace(document.uri, new vscode.Range(new vscode.Position(kernel.first, 0), last), kernelText(picked.text));
      await vscode.workspace.applyEdit(edit);
    } catch (error) {
      vscode.window.showWarningMessage(`roofdsl: ${error.message}`);
    }
  }

  context.subscriptions.push(
    { dispose: () => service?.dispose() },
    vscode.languages.registerHoverProvider("roof", hover),
    vscode.languages.registerCodeActionsProvider("roof", actions),
    vscode.commands.registerCommand("roof.advise", advise),
  );
}

module.exports = { activate, rangeOf };

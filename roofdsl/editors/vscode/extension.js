"use strict";
// Runs `roofdsl check --json` on a file that is opened, changed or saved, and shows what it finds where it is.

const path = require("node:path");
const { execFile } = require("node:child_process");
const vscode = require("vscode");

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
}

module.exports = { activate, rangeOf };

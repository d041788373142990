"use strict";
// `roofdsl serve --stdio` as a process that stays: one line of JSON for each request, one for each answer.

const { spawn } = require("node:child_process");
const readline = require("node:readline");

class Service {
  /** command: the program and its first arguments; folder: what it may read, or undefined. */
  constructor(command, folder, limitMs = 60000) {
    this.command = command;
    this.folder = folder;
    this.limitMs = limitMs;
    this.pending = new Map();
    this.last = 0;
    this.child = undefined;
  }

  /** The answer of a method; rejects with what the service says, and where it cannot be run. */
  request(method, params) {
    return new Promise((resolve, reject) => {
      const id = ++this.last;
      const timer = setTimeout(() => {
        this.pending.delete(id);
        reject(new Error(`roofdsl did not answer within ${this.limitMs / 1000} s`));
      }, this.limitMs);
      this.pending.set(id, { resolve, reject, timer });
      try {
        this._start().stdin.write(`${JSON.stringify({ id, method, params })}\n`);
      } catch (error) {
        this._settle(id, undefined, error);
      }
    });
  }

  _start() {
    if (this.child) return this.child;
    const [program, ...first] = this.command;
    const root = this.folder ? ["--root", this.folder] : [];
    const child = spawn(program, [...first, "serve", "--stdio", ...root], { stdio: ["pipe", "pipe", "ignore"] });
    const ended = (why) => {
      if (this.child === child) this.child = undefined;
      for (const id of [...this.pending.keys()]) this._settle(id, undefined, new Error(why));
    };
    child.on("error", () => ended(`\`${program}\` could not be run; set roof.command to where it is.`));
    child.on("exit", () => ended("roofdsl ended"));
    child.stdin.on("error", () => undefined); // `exit` tells it
    readline.createInterface({ input: child.stdout }).on("line", (line) => {
      try {
        const found = JSON.parse(line);
        const said = found.error && [found.error.message, found.error.help].filter(Boolean).join("; ");
        this._settle(found.id, found.result, said && new Error(said));
      } catch {
        // not a line of the service
      }
    });
    this.child = child;
    return child;
  }

  _settle(id, result, error) {
    const waiting = this.pending.get(id);
    if (!waiting) return;
    this.pending.delete(id);
    clearTimeout(waiting.timer);
    if (error) waiting.reject(error);
    else waiting.resolve(result);
  }

  dispose() {
    const child = this.child;
    this.child = undefined;
    child?.stdin.end();
    child?.kill();
  }
}

module.exports = { Service };

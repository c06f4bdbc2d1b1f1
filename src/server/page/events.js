// Server-sent events, as the HTML standard defines them, from text that comes in pieces, cut anywhere. Only their data
// is of interest here.

export class EventReader {
  #line = []; // pieces of a line that has not ended
  #data = []; // data lines of an event that has not ended
  #afterReturn = false; // the last piece ended in CR: an LF that follows belongs to it

  // The data of each event that `text` completes.
  read(text) {
    if (text === "") return [];
    const pairEnds = this.#afterReturn && text[0] === "\n";
    this.#afterReturn = text.endsWith("\r");
    const lines = (pairEnds ? text.slice(1) : text).split(/\r\n|\n|\r/);
    const rest = lines.pop();
    const events = [];
    for (const end of lines) {
      this.#line.push(end);
      this.#take(this.#line.join(""), events);
      this.#line = [];
    }
    if (rest !== "") this.#line.push(rest);
    return events;
  }

  #take(line, events) {
    if (line === "") {
      if (this.#data.length > 0) events.push(this.#data.join("\n"));
      this.#data = [];
    } else if (line === "data" || line.startsWith("data:")) {
      this.#data.push(line.slice(5).replace(/^ /, ""));
    }
  }
}

// What can go wrong with a call: the model answers with an error, or there is no answer.

export class ServerError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export class Unreachable extends Error {}
